"""The hot path on PostgreSQL: insert, claim, settle."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar, assert_never

from mainspring.clock import Clock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.lifecycle.burial import NEVER_BEGAN
from mainspring.model.failure import Failure
from mainspring.model.job import Cancelled, Claim, JobName, JobState, NewJob, Whereabouts
from mainspring.model.settlement import Reason, Settlement, Verdict
from mainspring.model.unique import Inserted
from mainspring.store.answering import KEPT
from mainspring.store.codes import VERDICT_CODE
from mainspring.store.effects import Effects
from mainspring.store.events import Events
from mainspring.store.ports import Stamp
from mainspring.store.postgres.claiming import Claiming
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.definitions import Definitions
from mainspring.store.postgres.events import meet, put_waits
from mainspring.store.postgres.hints import Hints
from mainspring.store.postgres.inserting import COPY_FROM, Batch, insert
from mainspring.store.postgres.lines import Lines
from mainspring.store.postgres.lives import NewServer
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.rows import written
from mainspring.store.postgres.unique import insert_unique
from mainspring.store.postgres.unique import written as written_batch
from mainspring.store.postgres.wake import Notifier
from mainspring.store.postgres.workflows import PostgresStepJobs
from mainspring.store.runs import day_before
from mainspring.store.workflows.calls import Workflows
from mainspring.store.workflows.session import WorkflowSession
from mainspring.store.workflows.start import start
from mainspring.waiting import pause

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

ID_BLOCK = 100
DROPPED_KEYS = 100_000
PRUNE_BATCH = 5000
PRUNED_WORKFLOWS = 100
RESOLVE_WITHIN = timedelta(seconds=20)
RESOLVE_EVERY = timedelta(milliseconds=250)

GOES_BACK = (Verdict.FAILED, Verdict.RELEASED, Verdict.CRASHED, Verdict.SNOOZED)
STAYS_DUE = (Verdict.RELEASED, Verdict.SNOOZED)
"""Those may be due as long as before."""
T = TypeVar("T")


class PostgresJobs:
    """JobQueue and DeadLetters on PostgreSQL."""

    effects: Effects
    events: Events
    workflows: Workflows

    def __init__(
        self,
        database: Database,
        names: Names,
        lines: Lines,
        notifier: Notifier,
        hints: Hints,
        clock: Clock,
    ) -> None:
        self._database = database
        self._names = names
        self._lines = lines
        self._notifier = notifier
        self._hints = hints
        self._step_jobs = PostgresStepJobs(Definitions(database), self._batch, self._take_ids)
        self._clock = clock
        self._spare_ids: deque[int] = deque()
        database.lives.on_change(self._spare_ids.clear)
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
            self._hints.put_back()  # one that was replaced may be due earlier than before
            self._notifier.poke()
        return answers

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
        return await self._claiming.claim(
            worker_id,
            queues=queues,
            tasks=tasks,
            limit=limit,
            at=at,
            everywhere=everywhere,
            suspects=suspects,
            last=last,
        )

    async def begin(self, claim: Claim, *, at: Stamp) -> bool:
        named = {"id": claim.job_id, "worker_id": claim.worker_id, "fence": claim.fence}
        return bool(await self._database.fetch("begin_suspect", **named))

    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        return await self._claiming.held(worker_id, at=at)

    async def whereabouts(self, job_ids: Sequence[int]) -> list[Whereabouts]:
        found = await self._database.fetch("whereabouts", job_ids=list(job_ids))
        return [Whereabouts(job_id=row["id"], live=row["live"], holder=row["holder"]) for row in found]

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        groups = _groups(settlements)
        starts = [s for s in settlements if s.start is not None]
        plain = not starts and all(s.log is None and s.awaits is None for s in settlements)
        if len(groups) == 1 and plain:
            [(verdict, batch)] = groups
            settled = await settle_batch(self._database.fetch, verdict, batch, at)
        else:
            opened = self._database.nesting if starts else self._database.transaction
            async with opened("settle") as transaction:
                settled = await _settle(transaction, settlements, at)
                if starts:
                    await self._start(transaction, starts, settled, at)
        verdicts = {verdict for verdict, _ in groups}
        if not verdicts.isdisjoint(STAYS_DUE):
            self._hints.put_back()  # all others are due from now on, behind every hint
        if not verdicts.isdisjoint(GOES_BACK):
            self._notifier.poke()
        return [s.job_id for s in settlements if s.job_id not in settled]

    async def _start(
        self, transaction: Transaction, settlements: Sequence[Settlement], settled: set[int], at: Stamp
    ) -> None:
        """Begin the workflows of jobs that were settled as started."""
        session = await WorkflowSession.of(transaction, self._step_jobs, at)
        found = await transaction.fetch("parents_of", ids=sorted(settled & {s.job_id for s in settlements}))
        await start(session, settlements, {row["id"]: row["workflow_id"] for row in found})

    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        return await recorded(self._database.fetch, settlements)

    async def cancel(self, job_ids: Sequence[int], *, at: Stamp) -> list[Cancelled]:
        rows = await self._database.fetch("cancel_jobs", ids=list(job_ids), at=at)
        was = {row["id"]: _state(row) for row in rows}
        return [Cancelled(job_id=job_id, was=was.get(job_id)) for job_id in job_ids]

    async def hasten(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        return await self._back("hasten_jobs", job_ids, at)

    async def expire(self, *, limit: int, at: Stamp) -> list[int]:
        rows = await self._database.relaxed("expire_jobs", limit=limit, error=written(NEVER_BEGAN), at=at)
        return sorted(row["job_id"] for row in rows)

    async def edit_dead(
        self, job_id: int, *, payload: bytes, expected: bytes, note: Failure, at: Stamp
    ) -> bool:
        edit = {"payload": payload, "expected": expected, "error": written(note)}
        return bool(await self._database.fetch("edit_dead", id=job_id, **edit, at=at))

    async def replay(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        return await self._back("replay_dead", job_ids, at)

    async def dead_names(self, job_ids: Sequence[int]) -> list[JobName]:
        found = await self._database.fetch("dead_names", job_ids=list(job_ids))
        return [JobName(job_id=row["id"], task=row["task"], queue=row["queue"]) for row in found]

    async def purge(self, job_ids: Sequence[int]) -> int:
        return len(await self._database.fetch("purge_dead", ids=list(job_ids)))

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        async with self._database.transaction("prune") as transaction:
            await transaction.fetch("lock_migrations")
            await transaction.fetch("add_partitions", at=at)
        async with self._database.transaction("prune") as transaction:
            await transaction.fetch("lock_migrations")
            [row] = await transaction.fetch("drop_partitions", keep=keep, at=at)
        await self._database.fetch("drop_keys", limit=DROPPED_KEYS, at=at)
        gone: int = row["gone"]
        [row] = await self._database.fetch("now", at=at)
        day = day_before(row["now"], keep)
        gone += await self.effects.prune(before=day, limit=PRUNE_BATCH) + await self.workflows.prune(
            before=day, limit=PRUNED_WORKFLOWS
        )
        while await self._database.fetch("prune_requests", before=row["now"] - KEPT, limit=PRUNE_BATCH):
            pass
        return gone + await self.events.prune(before=day, limit=PRUNE_BATCH)

    async def _take_ids(self, count: int) -> list[int]:
        while len(self._spare_ids) < count:
            # Durable: we may outlive a crash of the server, which must not give these to anybody else then.
            [row] = await self._database.fetch("reserve_ids", count=max(count, ID_BLOCK))
            self._spare_ids += row["ids"]
        return [self._spare_ids.popleft() for _ in range(count)]

    def _at_hand(self, jobs: Sequence[NewJob]) -> Batch | None:
        """One plain job of which everything is known already, as in most calls: nobody has to be asked."""
        if len(jobs) != 1 or jobs[0].gates or not self._spare_ids:
            return None
        place = self._names.place(jobs[0])
        if place is None:
            return None
        queue_id, task_id = place
        life = self._database.lives.count
        ids = [self._spare_ids.popleft()]
        return Batch(jobs=jobs, ids=ids, queue_ids=[queue_id], task_ids=[task_id], life=life)

    async def _batch(self, jobs: Sequence[NewJob], ids: list[int] | None = None) -> Batch:
        life = self._database.lives.count
        ids = ids or await self._take_ids(len(jobs))
        queue_ids = await self._names.queue_ids(job.queue for job in jobs)
        task_ids = await self._names.task_ids(job.task for job in jobs)
        await self._names.ensure_lanes({(q, job.priority) for q, job in zip(queue_ids, jobs, strict=True)})
        limited = any(job.gates for job in jobs)
        line_ids = await self._lines.ids(job.gates for job in jobs) if limited else None
        return Batch(jobs=jobs, ids=ids, queue_ids=queue_ids, task_ids=task_ids, line_ids=line_ids, life=life)

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
        """Write these jobs, once; None when they were written but the answer is lost."""
        while True:
            batch = self._at_hand(jobs) or await self._batch(jobs)
            try:
                return batch, await write(batch)
            except NewServer:
                pass  # nothing was written, and its numbers may mean something else there: all are asked anew
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

    async def _back(self, statement: str, job_ids: Sequence[int], at: Stamp) -> list[int]:
        rows = await self._database.fetch(statement, ids=list(job_ids), at=at)
        if rows:
            self._hints.put_back()
            self._notifier.poke()
        back = {row["id"] for row in rows}
        return [job_id for job_id in job_ids if job_id in back]


Fetch = Callable[..., Awaitable["list[Record]"]]


async def settle_batch(fetch: Fetch, verdict: Verdict, batch: list[Settlement], at: Stamp) -> set[int]:
    """Write one group by whichever way statements are run; answer the jobs that were settled."""
    params = {**_named(batch), "tooks": [s.took for s in batch], "at": at}
    match verdict:
        case Verdict.SUCCEEDED:
            results = [s.result for s in batch] if any(s.result is not None for s in batch) else None
            # Nearly all jobs are in their first claim, and the driver looks at each element of an array.
            fence = batch[0].fence
            if all(s.fence == fence for s in batch):
                params["fences"] = None
            [row] = await fetch("settle_succeeded", **params, fence=fence, results=results)
            return set(row["job_ids"] or ())
        case Verdict.DEAD | Verdict.FAILED | Verdict.CRASHED:
            dies = verdict is Verdict.DEAD or batch[0].reason is not None
            how = _dying(batch) if dies else {"delays": [s.delay for s in batch]}
            statement = "settle_dead" if dies else "settle_failed"
            rows = await fetch(
                statement, **params, **how, errors=_errors(batch), verdict=VERDICT_CODE[verdict]
            )
        case Verdict.RELEASED | Verdict.SNOOZED:
            back = {"rans": [s.ran for s in batch], "delays": [s.delay for s in batch]}
            rows = await fetch("settle_released", **params, **back, verdict=VERDICT_CODE[verdict])
        case Verdict.DISCARDED:
            rows = await fetch("settle_discarded", **params, errors=_errors(batch))
        case Verdict.STARTED:
            rows = await fetch("settle_started", **params, traces=[s.trace for s in batch])
        case Verdict.CANCELLED | Verdict.EDITED:
            raise ValueError(f"{verdict} is the store's to write, not a worker's")
        case _:
            assert_never(verdict)
    return {row["job_id"] for row in rows}


async def _settle(transaction: Transaction, settlements: Sequence[Settlement], at: Stamp) -> set[int]:
    """Several groups, logs, or jobs that wait for events, which are locked before any job."""
    settled: set[int] = set()
    awaiting = any(s.awaits is not None for s in settlements)
    if awaiting:
        settlements = await meet(transaction.fetch, settlements)
    for verdict, batch in _groups(settlements):
        settled |= await settle_batch(transaction.fetch, verdict, batch, at)
    if awaiting:
        await put_waits(transaction.fetch, settlements, settled)
    if any(s.log is not None for s in settlements):
        await note_logs(transaction, settlements, settled, at)
    return settled


async def recorded(fetch: Fetch, settlements: Sequence[Settlement]) -> list[int]:
    """The jobs whose run under exactly this claim is in history."""
    found = []
    for _, batch in _groups(settlements):
        found += await fetch("recorded_runs", **_named(batch))
    return [row["job_id"] for row in found]


def _dying(batch: list[Settlement]) -> dict[str, object]:
    return {"rans": [s.ran for s in batch], "reasons": [s.reason or Reason.FAILED for s in batch]}


def _errors(batch: list[Settlement]) -> list[str]:
    return [written(s.failure) for s in batch]


def _groups(settlements: Sequence[Settlement]) -> list[tuple[Verdict, list[Settlement]]]:
    """By verdict, worker and whether it ends the job, each sorted by job as the statements want it. Nearly
    always one group."""
    groups: dict[tuple[Verdict, int, bool], list[Settlement]] = defaultdict(list)
    for settlement in sorted(settlements, key=_job_id):
        groups[settlement.verdict, settlement.worker_id, settlement.reason is None].append(settlement)
    return [(verdict, batch) for (verdict, _, _), batch in groups.items()]


def _job_id(settlement: Settlement) -> int:
    return settlement.job_id


def _named(batch: list[Settlement]) -> dict[str, object]:
    """One worker's batch."""
    return {
        "worker_id": batch[0].worker_id,
        "job_ids": [s.job_id for s in batch],
        "fences": [s.fence for s in batch],
    }


def _state(row: Record) -> JobState:
    if row["running"]:
        return JobState.RUNNING
    return JobState.DELAYED if row["delayed"] else JobState.READY


async def note_logs(
    transaction: Transaction, settlements: Sequence[Settlement], settled: set[int], at: Stamp
) -> None:
    """Keep what was captured of the runs that were settled, in the same transaction."""
    logged = [s for s in settlements if s.log is not None and s.job_id in settled]
    if logged:
        await transaction.fetch(
            "note_logs",
            job_ids=[s.job_id for s in logged],
            worker_ids=[s.worker_id for s in logged],
            fences=[s.fence for s in logged],
            texts=[s.log for s in logged],
            at=at,
        )
