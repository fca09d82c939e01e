"""From the newest slots of schedules to how often in a row their jobs have died."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from itertools import groupby

from mainspring.model.trouble import Streak

SCHEDULES = 50
"""Of how many schedules the last slots are looked at: those with the newest dead letters."""


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
