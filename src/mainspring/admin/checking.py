"""Reads what is on record, page by page, for a comparison with the code about to be deployed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from mainspring.admin.deploy_check import Comparison, Source
from mainspring.clock import Clock
from mainspring.declare.registry import Registry
from mainspring.model.history import DeadFilter, DeadJob, JobFilter
from mainspring.model.job import Job
from mainspring.store.store import Store

LEAST_PAGE, MOST_PAGE = 50, 2000
PAGE_BYTES = 8 * 1024 * 1024
"""About as much of payloads as one page may hold, to judge by the page before."""


async def compare(store: Store, clock: Clock, registry: Registry, *, dead: bool) -> Comparison:
    """Look at every live job, every schedule that this code does not write anew, and, if asked, every
    dead letter. Jobs that come and go meanwhile may or may not be seen."""
    comparison = Comparison(registry.tasks)
    async for job in _live(store, clock):
        comparison.look(Source.JOB, job.id, job.task, job.payload)
    if dead:
        async for letter in _dead(store):
            comparison.look(Source.DEAD, letter.id, letter.task, letter.payload)
    for schedule in await store.schedules.all():
        # What code declares, it writes when it starts, unless somebody has edited it since.
        if schedule.edited or schedule.name not in registry.schedules:
            comparison.look(Source.SCHEDULE, schedule.name, schedule.task, schedule.payload)
    return comparison


async def _live(store: Store, clock: Clock) -> AsyncIterator[Job]:
    before, limit = None, LEAST_PAGE
    while page := await store.jobs.find(JobFilter(before=before, limit=limit), at=clock.stamp()):
        for job in page:
            yield job
        before, limit = page[-1].id, _next_limit(page)


async def _dead(store: Store) -> AsyncIterator[DeadJob]:
    before, limit = None, LEAST_PAGE
    while page := await store.dead_letters.find(DeadFilter(before=before, limit=limit)):
        for letter in page:
            yield letter
        before, limit = page[-1].id, _next_limit(page)


def _next_limit(page: Sequence[Job | DeadJob]) -> int:
    size = sum(_size(each) for each in page)
    return max(LEAST_PAGE, min(MOST_PAGE, PAGE_BYTES * len(page) // max(size, 1)))


def _size(job: Job | DeadJob) -> int:
    return len(job.payload) + sum(len(each.message) + len(each.traceback) for each in job.errors)
