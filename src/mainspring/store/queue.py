"""The queue: the hot path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.model.job import Answered, Claim, Inserted, NewJob, RequestKey, Whereabouts
from mainspring.model.run import Settlement
from mainspring.store.database import Stamp


class Queue(Protocol):
    """The hot path. Each dialect has its own: every statement and every call counts here."""

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        """Put jobs into their queues; answer their ids, in order. Durable on return.

        A broken connection is resolved inside: either all jobs are there once, or the call raises
        StoreUnavailable (none is) or AnswerLost (nobody could be asked; it names the ids).
        """

    async def insert_unique(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[Inserted]:
        """The same for a batch in which jobs have keys: each is made, or the job that has its key stands
        for it. Raises DuplicateJob, and writes nothing, where a key says so."""

    async def insert_once(self, request: RequestKey, jobs: Sequence[NewJob], *, at: Stamp) -> Answered:
        """As `insert_unique`, and what was answered is on record in the same transaction: the same request
        gets the same answer for at least a day, however many ask at once. Raises KeyReused where the key
        stands for something else."""

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
        """Hand up to `limit` due, unclaimed jobs of these queues and tasks to this worker.

        Best first: highest priority, then earliest `run_at`, then lowest id. Nothing is handed to
        a worker whose lease has ended. No attempt is counted. May be lost in a database crash:
        the job is then simply due again. Unless asked to look `everywhere`, it may miss for a while a job
        that came to be due late, before others that were claimed.

        At most so many of them are orphaned jobs: jobs that were running when a process died. They come
        first, and among themselves those that crashed least. One whose next crash would be its last is
        handed out only where no other orphaned job is, with `last`, and then it is the only orphaned job.
        """

    async def begin(self, claim: Claim, *, at: Stamp) -> bool:
        """Put on record that the run of this claim begins: from then on the death of its worker is a crash of
        the job. This is for orphaned jobs: the begin of other jobs is not recorded. False, and nothing
        changes, if the claim is no longer the job's. Durable on return; it may be done again."""

    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        """Every claim the store has under this worker: for after an answer to `claim` was lost."""

    async def whereabouts(self, job_ids: Sequence[int]) -> list[Whereabouts]:
        """Where each of these jobs is now, in their order: who has it, or whether it is live at all."""

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        """Write how runs ended, and what was captured of their logs; answer the ids of the jobs refused,
        because the claim named is no longer the job's. Durable on return. SUCCEEDED, DISCARDED and DEAD
        take the job out of the queue; FAILED counts one failure, keeps the error and waits `delay`;
        CRASHED does the same with one crash, or with a reason buries the job; SNOOZED and RELEASED cost
        nothing. SNOOZED with `awaits` waits no longer than until that event comes, and not at all if it has.
        DEAD counts a failure unless the handler never ran.
        """

    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        """Ids of those jobs whose run under exactly this claim is in history: for after an answer
        to `settle` was lost."""
