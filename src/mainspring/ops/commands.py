"""What operators order: cancel, retry, replay, purge. Unknown ids are refused before anything is done."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from mainspring.clock import Clock
from mainspring.errors import NotFound
from mainspring.model.history import DeadFilter
from mainspring.model.job import Job, JobState
from mainspring.model.value import Value
from mainspring.ops.belonging import retry_words
from mainspring.ops.replaying import Replay
from mainspring.store.ports import Stamp, Store

PAGE = 500


class Effect(StrEnum):
    """What an order did to one job."""

    CANCELLED = "cancelled"
    HASTENED = "hastened"
    REPLAYED = "replayed"
    PURGED = "purged"
    NONE = "none"


class Done(Value, frozen=True, kw_only=True):
    """One job's answer to an order; `why` says what stood against it."""

    job_id: int
    effect: Effect
    was: JobState | None = None
    why: str = ""


class Order(Protocol):
    """A store's method that moves jobs and answers the ids that were moved."""

    async def __call__(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]: ...


class Commands:
    """Orders to one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def cancel(self, ids: Sequence[int]) -> list[Done]:
        """Take live jobs out of their queues for good; a running one is taken from its worker."""
        found = await self._found(ids)
        answers = await self._store.jobs.cancel(list(found), at=self._clock.stamp())
        return [
            _refused(found[each.job_id])
            if each.was is None
            else Done(job_id=each.job_id, effect=Effect.CANCELLED, was=each.was)
            for each in answers
        ]

    async def retry(self, ids: Sequence[int]) -> list[Done]:
        """Make delayed jobs due now and put dead ones back into their queues."""
        found = await self._found(ids)
        done = [
            *await self._move(found, JobState.DELAYED, self._store.jobs.run_now, Effect.HASTENED),
            *await self._move(found, JobState.DEAD, self._store.dead_letters.replay, Effect.REPLAYED),
        ]
        return _in_order(found, done)

    async def replay(self, which: Sequence[int] | DeadFilter) -> list[Done]:
        """Put dead jobs back into their queues, with all attempts restored."""
        if isinstance(which, DeadFilter):
            return [
                Done(job_id=job_id, effect=Effect.REPLAYED, was=JobState.DEAD)
                async for page in Replay(self._store, self._clock, which).pages()
                for job_id in page.job_ids
            ]
        found = await self._found(which)
        return _in_order(
            found, await self._move(found, JobState.DEAD, self._store.dead_letters.replay, Effect.REPLAYED)
        )

    async def purge(self, which: Sequence[int] | DeadFilter) -> int:
        """Delete dead letters for good; answer how many. Named ones must all be there."""
        if isinstance(which, DeadFilter):
            return sum([await self._store.dead_letters.purge(page) async for page in self._dead_pages(which)])
        letters = await self._store.dead_letters.find(DeadFilter(ids=tuple(which), limit=max(len(which), 1)))
        for missing in set(which) - {each.id for each in letters}:
            raise NotFound("dead letter", missing)
        return await self._store.dead_letters.purge(list(dict.fromkeys(which)))

    async def purge_page(self, which: DeadFilter) -> tuple[int, bool]:
        """Delete the newest of these for good, as many as the filter's limit; answer how many, and whether
        that was all."""
        ids = [each.id for each in await self._store.dead_letters.find(which)]
        return await self._store.dead_letters.purge(ids), len(ids) < which.limit

    async def _found(self, ids: Sequence[int]) -> dict[int, Job]:
        found: dict[int, Job] = {}
        for job_id in dict.fromkeys(ids):
            job = await self._store.jobs.get(job_id, at=self._clock.stamp())
            if job is None:
                raise NotFound("job", job_id)
            found[job_id] = job
        return found

    async def _dead_pages(self, which: DeadFilter) -> AsyncIterator[list[int]]:
        page = msgspec.structs.replace(which, limit=PAGE)
        while letters := await self._store.dead_letters.find(page):
            yield [each.id for each in letters]
            page = msgspec.structs.replace(page, before=letters[-1].id)

    async def _move(
        self, found: Mapping[int, Job], state: JobState, order: Order, effect: Effect
    ) -> list[Done]:
        """Give the order for those in this state; a job that left it meanwhile answers so."""
        ids = [job.id for job in found.values() if job.state is state]
        moved = set(await order(ids, at=self._clock.stamp())) if ids else set()
        return [
            Done(job_id=job_id, effect=effect, was=state)
            if job_id in moved
            else Done(job_id=job_id, effect=Effect.NONE, was=state, why=_why_left(found[job_id]))
            for job_id in ids
        ]


def _in_order(found: Mapping[int, Job], done: Sequence[Done]) -> list[Done]:
    answers = {each.job_id: each for each in done}
    return [answers.get(job.id) or _refused(job) for job in found.values()]


def _why_left(job: Job) -> str:
    if job.state is JobState.DEAD and job.workflow_id is not None:
        return f"belongs to workflow {job.workflow_id}, which `{retry_words(job.workflow_id)}` runs again"
    return "has moved on meanwhile"


def _refused(job: Job) -> Done:
    return Done(job_id=job.id, effect=Effect.NONE, was=job.state, why=_WHY_NOT[job.state])


_WHY_NOT = {
    JobState.DELAYED: "is waiting for its time",
    JobState.READY: "is due already and waits for a worker",
    JobState.RUNNING: "is running",
    JobState.SUCCEEDED: "has succeeded",
    JobState.DEAD: "is dead",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded by its handler",
}
