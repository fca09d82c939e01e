"""The queue on PostgreSQL: insert, claim and settle."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import Answered, Claim, Inserted, NewJob, RequestKey, Whereabouts
from mainspring.model.run import Settlement, Verdict
from mainspring.store.database import Stamp, reads
from mainspring.store.postgres.claiming import Claiming
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.hints import Hints
from mainspring.store.postgres.inserting import (
    COPY_FROM,
    Batch,
    Batches,
    insert,
    insert_unique,
    insert_unique_in,
)
from mainspring.store.postgres.inserting import written as written_batch
from mainspring.store.postgres.lives import NewServer
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.settling import groups, meet, note_logs, put_waits, recorded, settle_batch
from mainspring.store.postgres.wake import Notifier
from mainspring.store.uniqueness import recalled, written
from mainspring.store.workflows.session import StepJobs, WorkflowSession
from mainspring.store.workflows.start import start
from mainspring.waiting import pause

RESOLVE_WITHIN = timedelta(seconds=20)
RESOLVE_EVERY = timedelta(milliseconds=250)

GOES_BACK = (Verdict.FAILED, Verdict.RELEASED, Verdict.CRASHED, Verdict.SNOOZED)
STAYS_DUE = (Verdict.RELEASED, Verdict.SNOOZED)
"""With these verdicts, a job may be due at the same moment as before."""
T = TypeVar("T")


class PostgresQueue:
    """Queue on PostgreSQL."""

    def __init__(
        self,
        database: Database,
        names: Names,
        batches: Batches,
        step_jobs: StepJobs,
        notifier: Notifier,
        hints: Hints,
        clock: Clock,
    ) -> None:
        self._database = database
        self._batches = batches
        self._step_jobs = step_jobs
        self._notifier = notifier
        self._hints = hints
        self._clock = clock
        self._claiming = Claiming(database, names, hints, clock)

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        if not jobs:
            return []
        batch, _ = await self._written(jobs, lambda batch: self._insert(batch, at))
        due = sum(job.run_at is None and not job.delay for job in jobs)
        if due:
            self._notifier.poke(due)
        return batch.ids

    async def insert_unique(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[Inserted]:
        batch, answers = await self._written(jobs, lambda batch: insert_unique(self._database, batch, at))
        if answers is None:
            answers = await written_batch(self._database, batch)
        if any(answer.created or answer.replaced for answer in answers):
            self._hints.put_back()  # a replaced job may be due earlier than before
            self._notifier.poke()
        return answers

    async def insert_once(self, request: RequestKey, jobs: Sequence[NewJob], *, at: Stamp) -> Answered:
        batch, answered = await self._written(
            jobs, lambda batch: _insert_once(self._database, request, batch, at)
        )
        if answered is None:
            # It was written, and its answer is on record beside it.
            answered = await _insert_once(self._database, request, batch, at)
        if any(job.created or job.replaced for job in answered.jobs) and not answered.again:
            self._hints.put_back()
            self._notifier.poke()
        return answered

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
        return await self._claiming.claim(
            worker_id,
            queues=queues,
            tasks=tasks,
            limit=limit,
            at=at,
            everywhere=everywhere,
            orphans=orphans,
            last=last,
        )

    async def begin(self, claim: Claim, *, at: Stamp) -> bool:
        named = {"id": claim.job_id, "worker_id": claim.worker_id, "fence": claim.fence}
        return bool(await self._database.fetch("begin_orphan", **named))

    @reads
    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        return await self._claiming.held(worker_id, at=at)

    @reads
    async def whereabouts(self, job_ids: Sequence[int]) -> list[Whereabouts]:
        found = await self._database.fetch("whereabouts", job_ids=list(job_ids))
        return [Whereabouts(job_id=row["id"], live=row["live"], holder=row["holder"]) for row in found]

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        by_verdict = groups(settlements)
        starts = [s for s in settlements if s.start is not None]
        plain = not starts and all(s.log is None and s.awaits is None for s in settlements)
        if len(by_verdict) == 1 and plain:
            [(verdict, batch)] = by_verdict
            settled = await settle_batch(self._database.fetch, verdict, batch, at)
        else:
            opened = self._database.nesting if starts else self._database.transaction
            async with opened("settle") as transaction:
                settled = await _settle(transaction, settlements, at)
                if starts:
                    await self._start(transaction, starts, settled, at)
        verdicts = {verdict for verdict, _ in by_verdict}
        if not verdicts.isdisjoint(STAYS_DUE):
            self._hints.put_back()  # with other verdicts, jobs are due later, after every hint
        if not verdicts.isdisjoint(GOES_BACK):
            self._notifier.poke()
        return [s.job_id for s in settlements if s.job_id not in settled]

    @reads
    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        return await recorded(self._database.fetch, settlements)

    async def _insert(self, batch: Batch, at: Stamp) -> None:
        if len(batch.jobs) >= COPY_FROM:
            async with self._database.transaction("insert_jobs", life=batch.life) as transaction:
                await insert(transaction, batch, at)
        else:
            statement, params = batch.call(at)
            await self._database.fetch_as_of(batch.life, statement, **params)

    async def _written(
        self, jobs: Sequence[NewJob], write: Callable[[Batch], Awaitable[T]]
    ) -> tuple[Batch, T | None]:
        """Write these jobs once. The answer is None if they were written but the answer was lost."""
        while True:
            batch = self._batches.at_hand(jobs) or await self._batches.make(jobs)
            try:
                return batch, await write(batch)
            except NewServer:
                pass  # nothing was written, and the numbers may be wrong there: read them again
            except AnswerLost as lost:
                if await self._arrived(batch.ids, lost):
                    return batch, None

    async def _arrived(self, ids: list[int], lost: AnswerLost) -> bool:
        """Whether an insert whose answer was lost has happened. Its session is ended first, so
        that the answer cannot change afterwards; an insert is whole or not at all."""
        give_up = self._clock.monotonic() + RESOLVE_WITHIN.total_seconds()
        while True:
            try:
                await self._database.end_session(lost.session)
                return bool(await self._database.fetch("known_ids", ids=ids))
            except (StoreUnavailable, AnswerLost) as error:
                if self._clock.monotonic() >= give_up:
                    raise AnswerLost("enqueue", ids=tuple(ids), session=lost.session) from error
                await pause(RESOLVE_EVERY)

    async def _start(
        self, transaction: Transaction, settlements: Sequence[Settlement], settled: set[int], at: Stamp
    ) -> None:
        """Begin the workflows of jobs that were settled as started."""
        session = await WorkflowSession.of(transaction, self._step_jobs, at)
        found = await transaction.fetch("parents_of", ids=sorted(settled & {s.job_id for s in settlements}))
        await start(session, settlements, {row["id"]: row["workflow_id"] for row in found})


async def _insert_once(database: Database, request: RequestKey, batch: Batch, at: Stamp) -> Answered:
    place = {"caller": request.caller, "key": request.key}
    async with database.transaction("insert_jobs", life=batch.life) as transaction:
        # A second call of the same request waits here for the first, and finds its answer.
        [row] = await transaction.fetch("add_request", **place, digest=request.digest, at=at)
        if row["answer"] is not None:
            return recalled(request, row["digest"], row["answer"])
        done = await insert_unique_in(transaction, batch, at)
        await transaction.fetch("answer_request", **place, answer=written(done))
    return Answered(jobs=tuple(done))


async def _settle(transaction: Transaction, settlements: Sequence[Settlement], at: Stamp) -> set[int]:
    """Settle several groups, with logs and with jobs that wait for events. Events are locked before jobs."""
    settled: set[int] = set()
    awaiting = any(s.awaits is not None for s in settlements)
    if awaiting:
        settlements = await meet(transaction.fetch, settlements)
    for verdict, batch in groups(settlements):
        settled |= await settle_batch(transaction.fetch, verdict, batch, at)
    if awaiting:
        await put_waits(transaction.fetch, settlements, settled)
    if any(s.log is not None for s in settlements):
        await note_logs(transaction, settlements, settled, at)
    return settled
