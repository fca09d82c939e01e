"""What both dialects do alike with what they watch: streaks of failures, and lists that are cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import TypeVar

from mainspring.model.alert import Rule, Streak

HERD = 50
"""Schedules of one herd that are named as overdue."""
OF_LISTS: dict[str, tuple[Rule, ...]] = {
    "overdue": (Rule.MISSED,),
    "dropped": (Rule.SLOTS_DROPPED,),
    "expected": (Rule.LATE_START, Rule.LATE_FINISH),
    "stale": (Rule.LATE_START,),
    "waiting": (Rule.OLDEST_WAITING, Rule.NO_WORKER),
    "lost": (Rule.MEMBER_LOST,),
    "died": (Rule.FAILED,),
    "failing": (Rule.FAILING,),
    "retrying": (Rule.RETRYING,),
}
"""Whose rules have more to tell where a list was cut."""
T = TypeVar("T")


class Lists:
    """Cuts lists to what may be named, and keeps which rules they were for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._cut: dict[Rule, None] = {}

    def cut(self, name: str, rows: Sequence[T], *, times: int = 1) -> Sequence[T]:
        """As many as may be named; `times` is how many rows there may be for each."""
        if len(rows) <= times * self._most:
            return rows
        self._cut.update(dict.fromkeys(OF_LISTS[name]))
        return rows[: times * self._most]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Those with more to tell."""
        return tuple(self._cut)


def streaks(looked_at: Iterable[tuple[str, datetime, bool, bool]]) -> tuple[Streak, ...]:
    """Of (schedule, slot, dead, live), newest slot first for each schedule. A job that is still live says
    nothing yet; one that ended otherwise ends the row."""
    found = []
    for name, slots in groupby(looked_at, key=lambda each: each[0]):
        dead: list[datetime] = []
        for _, slot_at, is_dead, is_live in slots:
            if is_dead:
                dead.append(slot_at)
            elif not is_live:
                break
        if dead:
            found.append(Streak(schedule=name, failures=len(dead), since=dead[-1]))
    return tuple(found)
