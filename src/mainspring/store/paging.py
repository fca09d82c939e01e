"""What both dialects do alike with pages: several sources by id, each of them looked at in part."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from msgspec.structs import replace

from mainspring.model.job import LIVE_STATES, Job, JobFilter, JobPage, JobState
from mainspring.model.value import Value

LOOK = 20_000
"""Rows that one page looks at, of each source, before it is given up."""
NEWEST = 2**63 - 1


class Found(Value, frozen=True, kw_only=True):
    """What one source has, newest id first."""

    jobs: tuple[Job, ...]
    down_to: int = 0
    """Every match with this id or a higher one is here; zero when there are no others."""
    gave_up: bool = False
    """It stopped because it had looked at enough, not because it had found enough."""


def found(jobs: Sequence[Job], limit: int, frontier: int | None) -> Found:
    """Up to limit + 1 matches, and the last row that was looked at if looking was given up there."""
    if len(jobs) > limit:
        return Found(jobs=tuple(jobs[:limit]), down_to=jobs[limit - 1].id)
    return Found(jobs=tuple(jobs), down_to=frontier or 0, gave_up=frontier is not None)


def merged(sources: Iterable[Found], limit: int) -> JobPage:
    """One page of several sources. Of a job that is in two of them, the first counts."""
    parts = list(sources)
    down_to = max((each.down_to for each in parts), default=0)
    jobs: dict[int, Job] = {}
    for part in parts:
        for job in part.jobs:
            if job.id >= down_to:
                jobs.setdefault(job.id, job)
    ordered = sorted(jobs.values(), key=lambda job: -job.id)
    if len(ordered) > limit:
        return JobPage(jobs=tuple(ordered[:limit]), next=ordered[limit - 1].id)
    partial = any(each.gave_up for each in parts if each.down_to == down_to)
    return JobPage(
        jobs=tuple(ordered),
        next=down_to or None,
        partial=partial and len(ordered) < limit,
    )


async def gathered(page: Callable[[JobFilter], Awaitable[JobPage]], which: JobFilter) -> list[Job]:
    """As many as were asked for, however many pages that takes."""
    jobs: list[Job] = []
    while True:
        found = await page(which)
        jobs += found.jobs
        if found.next is None or len(found.jobs) >= which.limit:
            return jobs
        which = replace(which, before=found.next, limit=which.limit - len(found.jobs))


def matches(job: Job, which: JobFilter) -> bool:
    """For jobs that were found by something else than the filter."""
    moment = job.enqueued_at if job.state in LIVE_STATES else job.finished_at or job.enqueued_at
    return (
        (job.state in which.wanted or _any_state(which))
        and which.task in (None, job.task)
        and which.queue in (None, job.queue)
        and (which.since is None or moment >= which.since)
        and (which.until is None or moment < which.until)
        and job.id < (which.before or NEWEST)
    )


def _any_state(which: JobFilter) -> bool:
    """Who asks for a key and for no state wants its job wherever it stands."""
    return which.key is not None and which.state is None and not which.states


def finished(which: JobFilter) -> tuple[JobState, ...]:
    """The states that only history knows."""
    return tuple(each for each in which.wanted if each not in (*LIVE_STATES, JobState.DEAD))


def live(which: JobFilter) -> tuple[JobState, ...]:
    """The states of the queue."""
    return tuple(each for each in which.wanted if each in LIVE_STATES)
