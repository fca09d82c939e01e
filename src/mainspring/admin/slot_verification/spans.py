"""Which trigger was in force when, and what the ledger's rows say about a moment."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import accumulate

from mainspring.model.schedule import Change, Schedule, ScheduleVersion, Slot
from mainspring.model.value import Value

_FOREVER = datetime.max.replace(tzinfo=UTC)


class Span(Value, frozen=True, kw_only=True):
    """Slots later than `after` and up to `until` are those of this trigger; None for those of nobody."""

    after: datetime
    until: datetime
    trigger: str | None
    ended_by: Change | None = None
    paused: bool = False


def spans(versions: Sequence[ScheduleVersion], schedule: Schedule | None) -> list[Span]:
    """One for each version, oldest first. A schedule older than the keeping of versions is taken as it is."""
    if not versions:
        return [] if schedule is None else [_as_it_is(schedule)]
    return [_span(versions, number) for number in range(len(versions))]


def is_whole(versions: Sequence[ScheduleVersion]) -> bool:
    """Whether the first version on record is the schedule's first."""
    return bool(versions) and versions[0].change is Change.CREATED


def _as_it_is(schedule: Schedule) -> Span:
    paused = schedule.paused_at is not None
    return Span(after=schedule.active_from, until=_FOREVER, trigger=schedule.trigger, paused=paused)


def _span(versions: Sequence[ScheduleVersion], number: int) -> Span:
    version, later = versions[number], versions[number + 1 :]
    return Span(
        after=version.changed_at,
        until=later[0].changed_at if later else _FOREVER,
        trigger=None if version.change is Change.DELETED else version.schedule.trigger,
        ended_by=later[0].change if later else None,
        paused=version.schedule.paused_at is not None,
    )


class Marks:
    """Where the rows and the stretches that rows stand for lie: each asked by halving."""

    def __init__(self, rows: Sequence[Slot]) -> None:
        self._slots = sorted(row.slot_at for row in rows)
        standing = sorted((row for row in rows if row.since is not None), key=lambda row: row.slot_at)
        self._ends = [row.slot_at for row in standing]
        # The one that starts first of this and all later stretches: one look tells whether any reaches back.
        self._first = list(accumulate(reversed(standing), _earlier))[::-1]

    def stands_for(self, slot: datetime) -> bool:
        """Whether a later row speaks for this slot too."""
        return self.standing(slot) is not None

    def standing(self, slot: datetime) -> Slot | None:
        """The later row that speaks for this slot too."""
        first = bisect_right(self._ends, slot)
        if first == len(self._ends):
            return None
        row = self._first[first]
        return row if _start(row) <= slot else None

    def decided(self, slot: datetime, until: datetime) -> bool:
        """Whether a row lies after the slot and not after `until`: slots are decided in order, so this
        one must have been decided too."""
        first = bisect_right(self._slots, slot)
        return first < bisect_right(self._slots, until, lo=first)


def _start(row: Slot) -> datetime:
    return row.since or row.slot_at


def _earlier(one: Slot, other: Slot) -> Slot:
    return min(one, other, key=_start)
