"""The list of schedules as people leaf through it: what is overdue first, then by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from mainspring.clock import Clock
from mainspring.model.job import JobState
from mainspring.model.pages import Only, ScheduleCounts, ScheduleFilter, ScheduleRow
from mainspring.model.schedule import Schedule
from mainspring.model.value import Value
from mainspring.ops.schedule_sheet import overdue
from mainspring.ops.slot_strip import Tile, strip
from mainspring.ops.words import in_words
from mainspring.store.ports import Store
from mainspring.trigger.misfire import LATE

OVERDUE_SHOWN = 20


class ListedSchedule(Value, frozen=True, kw_only=True):
    """One row of the list."""

    schedule: Schedule
    trigger: str
    """In words."""
    overdue: timedelta | None
    last: Tile | None
    """What became of its newest slot."""


class ScheduleList(Value, frozen=True, kw_only=True):
    """One page of it."""

    now: datetime
    counts: ScheduleCounts
    overdue: tuple[ListedSchedule, ...]
    """On the first page, before all others: the first so many that are."""
    rows: tuple[ListedSchedule, ...]
    next: str | None
    partial: bool


class ScheduleLists:
    """Pages from one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def page(self, which: ScheduleFilter) -> ScheduleList:
        """One page; the first one of all schedules begins with those that are overdue."""
        which = replace(which, late=LATE)
        stamp = self._clock.stamp()
        now = await self._store.now(at=stamp)
        found = await self._store.schedules_page(which, at=stamp)
        counts = await self._store.schedule_counts(late=LATE, at=stamp)
        late: Sequence[ScheduleRow] = ()
        if counts.overdue and which.after is None and which.only is None:
            first = replace(which, only=Only.OVERDUE, limit=OVERDUE_SHOWN)
            late = (await self._store.schedules_page(first, at=stamp)).rows
        jobs = sorted(
            {row.last.job_id for row in (*found.rows, *late) if row.last and row.last.job_id is not None}
        )
        states = await self._store.states(jobs, at=stamp) if jobs else {}
        return ScheduleList(
            now=now,
            counts=counts,
            overdue=_listed(late, states, now),
            rows=_listed(found.rows, states, now),
            next=found.next,
            partial=found.partial,
        )


def _listed(
    rows: Sequence[ScheduleRow], states: dict[int, JobState], now: datetime
) -> tuple[ListedSchedule, ...]:
    return tuple(
        ListedSchedule(
            schedule=row.schedule,
            trigger=in_words(row.schedule.trigger),
            overdue=overdue(row.schedule, now),
            last=None if row.last is None else strip([row.last], states)[0],
        )
        for row in rows
    )
