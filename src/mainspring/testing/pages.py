"""What a harness reads from its store, page by page."""

from __future__ import annotations

from datetime import datetime

import msgspec

from mainspring.clock import Clock
from mainspring.model.dead_letter import DeadFilter, DeadJob
from mainspring.model.job import Job, JobFilter, JobState
from mainspring.store.store import Store

PAGE = 1000
_FOR_EVER = 9996
"""From this year on jobs are due that wait for an event, or for others of their schedule."""


async def every_job(
    store: Store, clock: Clock, *, task: str | None = None, state: JobState | None = None
) -> list[Job]:
    """Every live job, oldest first."""
    which, found = JobFilter(task=task, state=state, limit=PAGE), list[Job]()
    while page := await store.jobs.find(which, at=clock.stamp()):
        found += page
        which = msgspec.structs.replace(which, before=page[-1].id)
    return found[::-1]


async def every_dead(store: Store) -> list[DeadJob]:
    """Every dead letter, oldest first."""
    which, found = DeadFilter(limit=PAGE), list[DeadJob]()
    while page := await store.dead_letters.find(which):
        found += page
        which = msgspec.structs.replace(which, before=page[-1].id)
    return found[::-1]


async def next_moment(store: Store, clock: Clock, *, end: datetime | None) -> datetime | None:
    """When the next thing falls due: a slot or a job, until `end`; without one, only while a job waits, for
    schedules alone would go on for ever."""
    now = clock.now()
    jobs = await every_job(store, clock, state=JobState.DELAYED)
    moments = [job.run_at for job in jobs if now < job.run_at and job.run_at.year < _FOR_EVER]
    if end is None and not moments:
        return None
    wait = await store.slots.next_due(at=clock.stamp())
    if wait:
        moments.append(now + wait)
    soonest = min(moments, default=None)
    return soonest if soonest is not None and (end is None or soonest <= end) else None
