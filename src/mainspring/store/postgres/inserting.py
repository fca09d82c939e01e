"""Rows of new jobs on PostgreSQL: by one statement, or by COPY when there are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from mainspring.model.job import NewJob
from mainspring.model.value import Value
from mainspring.store.codes import GATED
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Transaction

COPY_FROM = 1000
"""From this many rows on, COPY is faster than INSERT … unnest."""
_COPIED = ["id", "queue_id", "task_id", "priority", "run_at", "enqueued_at", "max_attempts", "payload"]


class Batch(Value, frozen=True, kw_only=True):
    """Jobs to be inserted together, with the numbers they get."""

    jobs: Sequence[NewJob]
    ids: list[int]
    queue_ids: list[int]
    task_ids: list[int]
    line_ids: list[int | None] | None = None
    """None where no job has limits."""

    def only(self, places: Sequence[int]) -> Batch:
        """Those at these places."""
        if len(places) == len(self.jobs):
            return self
        return Batch(
            jobs=[self.jobs[place] for place in places],
            ids=[self.ids[place] for place in places],
            queue_ids=[self.queue_ids[place] for place in places],
            task_ids=[self.task_ids[place] for place in places],
            line_ids=None if self.line_ids is None else [self.line_ids[place] for place in places],
        )

    @property
    def statement(self) -> str:
        """What writes the rows."""
        return "insert_jobs" if self.line_ids is None else "insert_limited_jobs"

    def params(self, at: Stamp) -> dict[str, object]:
        """What the statement wants."""
        jobs = self.jobs
        return {
            "line_ids": self.line_ids,
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


async def insert(transaction: Transaction, batch: Batch, at: Stamp) -> None:
    """Write the rows."""
    if len(batch.jobs) >= COPY_FROM:
        [row] = await transaction.fetch("now", at=at)
        columns = _COPIED if batch.line_ids is None else [*_COPIED, "line_id", "due_at"]
        await transaction.copy("jobs", columns, _records(batch, row["now"]))
    elif batch.jobs:
        await transaction.fetch(batch.statement, **batch.params(at))


def _records(batch: Batch, now: datetime) -> Iterator[tuple[object, ...]]:
    lines = batch.line_ids
    for place, (job_id, job) in enumerate(zip(batch.ids, batch.jobs, strict=True)):
        run_at = job.run_at or (now + job.delay if job.delay else now)
        numbers = job_id, batch.queue_ids[place], batch.task_ids[place], job.priority
        rest = now, job.max_attempts, job.payload
        if lines is None:
            yield *numbers, run_at, *rest
        elif lines[place] is None:
            yield *numbers, run_at, *rest, None, None
        else:
            yield *numbers, GATED, *rest, lines[place], run_at
