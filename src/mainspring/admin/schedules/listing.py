"""The list of schedules as people leaf through it: what is overdue first, then by name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from mainspring.admin.schedules.sheet import overdue
from mainspring.admin.schedules.slot_strip import Tile, strip
from mainspring.admin.words import in_words
from mainspring.clock import Clock
from mainspring.model.job import JobState
from mainspring.model.schedule import Only, Schedule, ScheduleCounts, ScheduleFilter, ScheduleRow
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.triggers.misfire import LATE

OVERDUE_SHOWN = 20


class ListedSchedule(Value, frozen=True, kw_only=True):
    """One row of the list."""

    schedule: Schedule
    trigger: str
    """In words."""
    overdue: timedelta | None
    last: Tile | None
    """What became of its newest slot."""


class ScheduleSummary(Value, frozen=True, kw_only=True):
    """How many there are, and the first so many that are overdue."""

    counts: ScheduleCounts
    overdue: tuple[ListedSchedule, ...]


class ScheduleList(Value, frozen=True, kw_only=True):
    """One page of it."""

    rows: tuple[ListedSchedule, ...]
    next: str | None
    partial: bool


async def summary(store: Store, clock: Clock) -> ScheduleSummary:
    """How many schedules there are, and the first that are overdue."""
    counts = await store.schedules.counts(late=LATE, at=clock.stamp())
    late = ScheduleFilter(only=Only.OVERDUE, limit=OVERDUE_SHOWN)
    return ScheduleSummary(
        counts=counts, overdue=(await listed(store, clock, late)).rows if counts.overdue else ()
    )


async def listed(store: Store, clock: Clock, which: ScheduleFilter) -> ScheduleList:
    """One page, by name."""
    stamp = clock.stamp()
    found = await store.schedules.page(replace(which, late=LATE), at=stamp)
    jobs = sorted({row.last.job_id for row in found.rows if row.last and row.last.job_id is not None})
    states = await store.jobs.states(jobs, at=stamp) if jobs else {}
    now = await store.now(at=stamp)
    return ScheduleList(rows=_listed(found.rows, states, now), next=found.next, partial=found.partial)


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
