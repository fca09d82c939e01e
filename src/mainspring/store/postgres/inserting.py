"""Inserts of jobs on PostgreSQL: by one statement, or by COPY if there are many jobs.

Jobs that have unique keys are inserted in one transaction, which locks the keys in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import cast

from mainspring.model.job import Inserted, NewJob, OnDuplicate
from mainspring.model.value import Value
from mainspring.model.workflow import StepRecord
from mainspring.store.codes import LIMITED
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.limits import Lines
from mainspring.store.postgres.names import Names
from mainspring.store.rows import maybe_moment
from mainspring.store.uniqueness import Decision, Holder, decide

ID_BLOCK = 100
"""The number of ids that are reserved at a time."""
COPY_FROM = 1000
"""From this many rows on, COPY is faster than INSERT … unnest."""
_COPIED = ["id", "queue_id", "task_id", "priority", "run_at", "enqueued_at", "max_attempts", "payload"]
_RUN_AT = _COPIED.index("run_at")

Row = tuple[object, ...]


class Batch(Value, frozen=True, kw_only=True):
    """Jobs to be inserted together, with their numbers."""

    jobs: Sequence[NewJob]
    ids: list[int]
    queue_ids: list[int]
    task_ids: list[int]
    limit_set_ids: list[int | None] | None = None
    """None where no job has limits."""
    steps: Sequence[StepRecord] | None = None
    """The steps of these jobs, if they are jobs of steps."""
    life: int
    """The count of lives when the numbers were read."""

    def only(self, places: Sequence[int]) -> Batch:
        """The jobs at these places."""
        if len(places) == len(self.jobs):
            return self
        return Batch(
            jobs=[self.jobs[place] for place in places],
            ids=[self.ids[place] for place in places],
            queue_ids=[self.queue_ids[place] for place in places],
            task_ids=[self.task_ids[place] for place in places],
            limit_set_ids=None
            if self.limit_set_ids is None
            else [self.limit_set_ids[place] for place in places],
            life=self.life,
        )

    @property
    def expiring(self) -> bool:
        """Whether any of the jobs has a deadline."""
        return any(job.expires is not None or job.expires_at is not None for job in self.jobs)

    @property
    def traced(self) -> bool:
        """Whether any of the jobs has a trace."""
        return any(job.trace is not None for job in self.jobs)

    def call(self, at: Stamp) -> tuple[str, dict[str, object]]:
        """The statement that writes the rows, and its parameters."""
        if self.steps is not None:
            return "insert_workflow_jobs", self._many(at) | {
                "workflow_ids": [step.workflow_id for step in self.steps],
                "fences": [step.fence for step in self.steps],
            }
        if self.limit_set_ids is not None:
            return "insert_limited_jobs", self._many(at)
        return self._one(at) if len(self.jobs) == 1 else ("insert_jobs", self._many(at))

    def _many(self, at: Stamp) -> dict[str, object]:
        jobs, expiring = self.jobs, self.expiring
        return {
            "expires_ats": [job.expires_at for job in jobs] if expiring else None,
            "expires": [job.expires for job in jobs] if expiring else None,
            "traces": [job.trace for job in jobs] if self.traced else None,
            "limit_set_ids": self.limit_set_ids,
            "ids": self.ids,
            "queue_ids": self.queue_ids,
            "task_ids": self.task_ids,
            "priorities": [job.priority for job in jobs],
            "run_ats": [job.run_at for job in jobs],
            "delays": [job.delay for job in jobs],
            "max_attempts": [job.max_attempts for job in jobs],
            "payloads": [job.payload for job in jobs],
            "at": at,
        }

    def _one(self, at: Stamp) -> tuple[str, dict[str, object]]:
        job = self.jobs[0]
        plain = {
            "id": self.ids[0],
            "queue_id": self.queue_ids[0],
            "task_id": self.task_ids[0],
            "priority": job.priority,
            "max_attempts": job.max_attempts,
            "payload": job.payload,
        }
        more = {
            "run_at": job.run_at,
            "delay": job.delay,
            "expires_at": job.expires_at,
            "expires": job.expires,
            "trace": job.trace,
            "at": at,
        }
        return ("insert_job", plain | more) if any(more.values()) else ("insert_due_job", plain)


class Batches:
    """Makes batches: it gives jobs their numbers before the insert. Ids are reserved in blocks."""

    def __init__(self, database: Database, names: Names, lines: Lines) -> None:
        self._database, self._names, self._lines = database, names, lines
        self._spare_ids: deque[int] = deque()
        database.lives.on_change(self._spare_ids.clear)

    async def take_ids(self, count: int) -> list[int]:
        """Ids that no other job gets."""
        while len(self._spare_ids) < count:
            # Durable: after a crash, the server must not give these ids to another process.
            [row] = await self._database.fetch("reserve_ids", count=max(count, ID_BLOCK))
            self._spare_ids += row["ids"]
        return [self._spare_ids.popleft() for _ in range(count)]

    def at_hand(self, jobs: Sequence[NewJob]) -> Batch | None:
        """A batch of one plain job whose numbers are all cached, as in most calls; None for any other
        jobs."""
        if len(jobs) != 1 or jobs[0].limit_keys or not self._spare_ids:
            return None
        place = self._names.place(jobs[0])
        if place is None:
            return None
        queue_id, task_id = place
        life = self._database.lives.count
        ids = [self._spare_ids.popleft()]
        return Batch(jobs=jobs, ids=ids, queue_ids=[queue_id], task_ids=[task_id], life=life)

    async def make(self, jobs: Sequence[NewJob], ids: list[int] | None = None) -> Batch:
        """A batch of these jobs, under these ids or new ones; a name without a number gets one."""
        life = self._database.lives.count
        ids = ids or await self.take_ids(len(jobs))
        queue_ids = await self._names.queue_ids(job.queue for job in jobs)
        task_ids = await self._names.task_ids(job.task for job in jobs)
        await self._names.ensure_priority_levels(
            {(q, job.priority) for q, job in zip(queue_ids, jobs, strict=True)}
        )
        limited = any(job.limit_keys for job in jobs)
        limit_set_ids = await self._lines.ids(job.limit_keys for job in jobs) if limited else None
        return Batch(
            jobs=jobs, ids=ids, queue_ids=queue_ids, task_ids=task_ids, limit_set_ids=limit_set_ids, life=life
        )


async def insert(transaction: Transaction, batch: Batch, at: Stamp) -> None:
    """Write the rows."""
    if len(batch.jobs) >= COPY_FROM:
        [row] = await transaction.fetch("now", at=at)
        columns, records = _COPIED, _records(batch, row["now"])
        if batch.limit_set_ids is not None:
            columns, records = (
                [*columns, "limit_set_id", "due_at"],
                _with_limit_sets(records, batch.limit_set_ids),
            )
        if batch.expiring:
            columns, records = [*columns, "expires_at"], _with_deadlines(records, batch.jobs)
        if batch.traced:
            columns, records = [*columns, "trace"], _with_traces(records, batch.jobs)
        if batch.steps is not None:
            roots = sorted({step.workflow_id for step in batch.steps})
            found = await transaction.fetch("root_traces", ids=roots)
            traces: dict[int, str] = {row["id"]: row["trace"] for row in found}
            columns = [*columns, "workflow_id", "fence", "trace"]
            records = _with_steps(records, batch.steps, traces)
        await transaction.copy("jobs", columns, records)
    elif batch.jobs:
        statement, params = batch.call(at)
        await transaction.fetch(statement, **params)


async def insert_unique(database: Database, batch: Batch, at: Stamp) -> list[Inserted]:
    """Insert each job of the batch, or find the job that has its key."""
    async with database.transaction("insert_jobs", life=batch.life) as transaction:
        return await insert_unique_in(transaction, batch, at)


async def insert_unique_in(transaction: Transaction, batch: Batch, at: Stamp) -> list[Inserted]:
    """The same, as a part of a transaction."""
    [row] = await transaction.fetch("now", at=at)
    holders = await _lock_keys(transaction, batch)
    found = await transaction.fetch("live_holders", ids=[each.job_id for each in holders.values()])
    live = {row["id"]: row["running"] for row in found}
    done = decide(batch.jobs, batch.ids, holders, live, row["now"])
    await _take_keys(transaction, batch.jobs, done, row["now"])
    await insert(transaction, batch.only(done.make), at)
    for place in done.replace:
        await _replace(transaction, batch, place, done.answers[place].job_id, at)
    return list(done.answers)


async def written(database: Database, batch: Batch) -> list[Inserted]:
    """The answer for a batch that was written, but whose answer was lost. An inserted job has its reserved
    id. For any other job, the answer is the holder of its key."""
    known = {row["id"] for row in await database.fetch("known_ids", ids=batch.ids)}
    wanted = sorted({job.unique.digest for job in batch.jobs if job.unique is not None})
    holders = {row["key"]: row["job_id"] for row in await database.fetch("key_holders", keys=wanted)}
    return [
        Inserted(job_id=job_id)
        if job.unique is None or job_id in known
        else Inserted(
            job_id=holders.get(job.unique.digest, job_id),
            created=False,
            replaced=job.unique.on_duplicate is OnDuplicate.REPLACE,
        )
        for job, job_id in zip(batch.jobs, batch.ids, strict=True)
    ]


async def _lock_keys(transaction: Transaction, batch: Batch) -> dict[bytes, Holder]:
    keys = {
        job.unique.digest: (job.unique.name, job_id)
        for job, job_id in zip(batch.jobs, batch.ids, strict=True)
        if job.unique is not None
    }
    ordered = sorted(keys)  # in one order, so that two batches do not wait for each other
    rows = await transaction.fetch(
        "lock_keys",
        keys=ordered,
        names=[keys[each][0] for each in ordered],
        job_ids=[keys[each][1] for each in ordered],
    )
    return {row["key"]: Holder(job_id=row["job_id"], until=maybe_moment(row["until"])) for row in rows}


async def _take_keys(transaction: Transaction, jobs: Sequence[NewJob], done: Decision, now: datetime) -> None:
    made = sorted(
        (key.digest, done.answers[place].job_id, None if key.period is None else now + key.period)
        for place in done.make
        if (key := jobs[place].unique) is not None
    )
    if made:
        await transaction.fetch(
            "take_keys",
            keys=[digest for digest, _, _ in made],
            job_ids=[job_id for _, job_id, _ in made],
            untils=[until for _, _, until in made],
        )


async def _replace(transaction: Transaction, batch: Batch, place: int, job_id: int, at: Stamp) -> None:
    job = batch.jobs[place]
    await transaction.fetch(
        "replace_job",
        id=job_id,
        payload=job.payload,
        priority=job.priority,
        queue_id=batch.queue_ids[place],
        run_at=job.run_at,
        delay=job.delay,
        max_attempts=job.max_attempts,
        trace=job.trace,
        at=at,
    )


def _records(batch: Batch, now: datetime) -> Iterator[Row]:
    for job_id, job, queue_id, task_id in zip(
        batch.ids, batch.jobs, batch.queue_ids, batch.task_ids, strict=True
    ):
        run_at = job.run_at or (now + job.delay if job.delay else now)
        yield job_id, queue_id, task_id, job.priority, run_at, now, job.max_attempts, job.payload


def _with_limit_sets(records: Iterator[Row], limit_set_ids: Sequence[int | None]) -> Iterator[Row]:
    for row, limit_set_id in zip(records, limit_set_ids, strict=True):
        if limit_set_id is None:
            yield *row, None, None
        else:
            yield *row[:_RUN_AT], LIMITED, *row[_RUN_AT + 1 :], limit_set_id, row[_RUN_AT]


def _with_deadlines(records: Iterator[Row], jobs: Sequence[NewJob]) -> Iterator[Row]:
    for row, job in zip(records, jobs, strict=True):
        # A job that waits for its limits is due at its moment in the line.
        due = cast("datetime", row[-1] if row[_RUN_AT] == LIMITED else row[_RUN_AT])
        yield *row, job.expires_at or (None if job.expires is None else due + job.expires)


def _with_traces(records: Iterator[Row], jobs: Sequence[NewJob]) -> Iterator[Row]:
    for row, job in zip(records, jobs, strict=True):
        yield *row, job.trace


def _with_steps(
    records: Iterator[Row], steps: Sequence[StepRecord], traces: Mapping[int, str]
) -> Iterator[Row]:
    for row, step in zip(records, steps, strict=True):
        yield *row, step.workflow_id, step.fence, traces.get(step.workflow_id)
