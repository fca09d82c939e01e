"""The queue: the hot path, and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from mainspring.model.failure import Failure
from mainspring.model.job import Cancelled, Claim, JobName, NewJob, Whereabouts
from mainspring.model.settlement import Settlement
from mainspring.model.unique import Inserted
from mainspring.store.ports.stamp import Stamp


class JobQueue(Protocol):
    """The hot path."""

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        """Put jobs into their queues; answer their ids, in order. Durable on return.

        A broken connection is resolved inside: either all jobs are there once, or the call raises
        StoreUnavailable (none is) or AnswerLost (nobody could be asked; it names the ids).
        """

    async def insert_unique(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[Inserted]:
        """The same for a batch in which jobs have keys: each is made, or the job that has its key stands
        for it. Raises DuplicateJob, and writes nothing, where a key says so."""

    async def claim(
        self,
        worker_id: int,
        *,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        at: Stamp,
        everywhere: bool = False,
        suspects: int | None = None,
        last: bool = True,
    ) -> list[Claim]:
        """Hand up to `limit` due, unclaimed jobs of these queues and tasks to this worker.

        Best first: highest priority, then earliest `run_at`, then lowest id. Nothing is handed to
        a worker whose lease has ended. No attempt is counted. May be lost in a database crash:
        the job is then simply due again. Unless asked to look `everywhere`, it may miss for a while a job
        that came to be due late, before others that were claimed.

        At most so many of them are `suspects`: jobs that were in hand when a process died. They come
        first, and among themselves those that crashed least. One whose next crash would be its last is
        handed out only where no other suspect is, with `last`, and then it is the only suspect.
        """

    async def begin(self, claim: Claim, *, at: Stamp) -> bool:
        """Put on record that the run of this claim begins: from then on the death of its worker is a crash
        of the job. For suspects: of other jobs nobody knows. False, and nothing changes, if the claim is no
        longer the job's. Durable on return; it may be done again."""

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

    async def cancel(self, job_ids: Sequence[int], *, at: Stamp) -> list[Cancelled]:
        """Take live jobs out of the queue for good. A running one is taken from its worker: its
        settlement will be refused, and the next heartbeat tells it to stop."""

    async def hasten(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Make waiting (delayed) jobs due now; answer the ids that were."""

    async def expire(self, *, limit: int, at: Stamp) -> list[int]:
        """Make dead letters, with reason `expired`, of jobs whose deadline has come and that nobody holds,
        at most `limit` a pass; answer their ids. Each leaves a run that never started."""

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop history (runs, their logs and the ledger) of the whole UTC days that ended `keep` ago or
        earlier, steps and events of that age whose job nobody knows any more, and everybody's events of
        that age, and see to it that there is room for the days ahead. Dead letters are never touched.
        Answers how many rows or partitions went: zero means there was nothing."""


class DeadLetters(Protocol):
    """Jobs that are not tried again. They leave only by replay and purge."""

    async def replay(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Put dead jobs back into their queue under the same id, with all attempts restored and
        without a deadline; answer the ids that were."""

    async def dead_names(self, job_ids: Sequence[int]) -> list[JobName]:
        """What those of these jobs are that are dead letters."""

    async def edit_dead(
        self, job_id: int, *, payload: bytes, expected: bytes, note: Failure, at: Stamp
    ) -> bool:
        """Give a dead letter other arguments, if it still has those expected; they stay on record as a
        run with verdict `edited` and this note."""

    async def purge(self, job_ids: Sequence[int]) -> int:
        """Delete dead letters for good; answer how many."""
