"""The queue: insert, claim and settle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.model.job import Answered, Claim, Inserted, NewJob, RequestKey, Whereabouts
from mainspring.model.run import Settlement
from mainspring.store.database import Stamp


class Queue(Protocol):
    """The queue. Each dialect has its own, because the cost of every statement and every call counts here."""

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        """Put jobs into their queues; answer their ids, in order. The jobs are durable on return.

        The call resolves a broken connection: either all jobs are inserted once, or the call raises
        StoreUnavailable (no job is inserted) or AnswerLost (the store could not be asked; the error has the
        ids).
        """

    async def insert_unique(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[Inserted]:
        """The same for a batch in which jobs have unique keys: a job is inserted, or the answer is the job
        that has its key. It raises DuplicateJob, and writes nothing, where a key asks for this error."""

    async def insert_once(self, request: RequestKey, jobs: Sequence[NewJob], *, at: Stamp) -> Answered:
        """As `insert_unique`, and the answer is recorded in the same transaction. The same request gets the
        same answer for at least a day, also if several callers ask at the same time. It raises KeyReused if
        the key belongs to a different request."""

    async def claim(
        self,
        worker_id: int,
        *,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        at: Stamp,
        everywhere: bool = False,
        orphans: int | None = None,
        last: bool = True,
    ) -> list[Claim]:
        """Claim up to `limit` due jobs of these queues and tasks for this worker.

        The order is: highest priority, then earliest `run_at`, then lowest id. A worker whose lease has ended
        gets no job. A claim counts no attempt. A claim may be lost in a crash of the database: then the job
        is due again. Without `everywhere`, a claim may miss, for a short time, a job that was written late
        and is due before jobs that were claimed already.

        At most `orphans` of the jobs are orphaned jobs: jobs whose process died while it held them. They come
        first, in the order of their crashes. An orphaned job whose next crash would be its last is claimed
        only with `last`, only if there is no other orphaned job, and then it is the only orphaned job of the
        answer.
        """

    async def begin(self, claim: Claim, *, at: Stamp) -> bool:
        """Record that the run of this claim begins: from then on the death of its worker is a crash of the
        job. This is for orphaned jobs only; the begin of other runs is not recorded. False, and nothing
        changes, if the claim is no longer the job's. The record is durable on return. The call may be
        repeated."""

    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        """Every claim of this worker in the store: for use after the answer to `claim` was lost."""

    async def whereabouts(self, job_ids: Sequence[int]) -> list[Whereabouts]:
        """For each of these jobs, in their order: whether the job is live, and the process that holds it."""

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        """Write how runs ended, and their captured logs; answer the ids of refused jobs, for which the claim
        named is no longer the job's. The settlements are durable on return. SUCCEEDED, DISCARDED and DEAD
        remove the job from the queue. FAILED counts one failure, keeps the error and waits `delay`. CRASHED
        does the same with one crash; with a reason the job becomes a dead letter. SNOOZED and RELEASED count
        no attempt. SNOOZED with `awaits` waits until the event comes, at most `delay`; if the event has come
        already, the job does not wait. DEAD counts a failure unless the handler never ran.
        """

    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        """The ids of jobs whose run under exactly this claim is in history: for use after the answer to
        `settle` was lost."""
