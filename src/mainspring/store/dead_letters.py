"""Dead letters: jobs that are not retried. Only a replay or a purge removes a dead letter."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.dead_letter import DeadFilter, DeadGroup, DeadJob
from mainspring.model.job import Failure, JobName
from mainspring.store.audit_log import carried_out_alone
from mainspring.store.database import Database, Row, Stamp, reads
from mainspring.store.rows import reader, written

dead_job = reader(DeadJob)
_group = reader(DeadGroup)
_name = reader(JobName)


class DeadLetters:
    """Jobs that ended without success, with every error that their runs reported."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @reads
    async def find(self, which: DeadFilter) -> list[DeadJob]:
        """Dead letters, newest id first."""
        return [dead_job(row) for row in await self._database.fetch("dead_jobs", **_params(which))]

    @reads
    async def count(self, which: DeadFilter) -> int:
        """How many dead letters there are, counted up to the filter's limit."""
        [row] = await self._database.fetch("count_dead", **_params(which))
        return int(row["count"])

    @reads
    async def groups(self, which: DeadFilter) -> list[DeadGroup]:
        """Dead letters by task and last error, the largest group first."""
        return [_group(row) for row in await self._database.fetch("dead_groups", **_params(which))]

    @reads
    async def names(self, job_ids: Sequence[int]) -> list[JobName]:
        """Task and queue of each of these jobs that is a dead letter."""
        return [_name(row) for row in await self._database.fetch("dead_names", ids=list(job_ids))]

    async def edit(self, job_id: int, *, payload: bytes, expected: bytes, note: Failure, at: Stamp) -> bool:
        """Give a dead letter other arguments, if it still has the expected arguments. The old arguments stay
        on record as a run with verdict `edited` and this note."""
        return await carried_out_alone(
            self._database,
            "edit_dead",
            bool,
            id=job_id,
            payload=payload,
            expected=expected,
            error=written(note),
            at=at,
        )

    async def replay(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Put dead letters back into their queues under the same id, with all attempts restored and without a
        deadline; answer the ids of these jobs."""

        def read(rows: Sequence[Row]) -> list[int]:
            back = {row["id"] for row in rows}
            return [job_id for job_id in job_ids if job_id in back]

        found = await carried_out_alone(self._database, "replay_dead", read, ids=list(job_ids), at=at)
        if found:
            self._database.hint(earlier=True)
        return found

    async def purge(self, job_ids: Sequence[int]) -> int:
        """Delete dead letters for good; answer how many."""
        return await carried_out_alone(self._database, "purge_dead", len, ids=list(job_ids))


def _params(which: DeadFilter) -> dict[str, object]:
    return {
        "ids": None if which.ids is None else list(which.ids),
        "task": which.task,
        "queue": which.queue,
        "reason": which.reason,
        "error": which.error,
        "text": which.text,
        "died_from": which.died_from,
        "died_before": which.died_before,
        "before": which.before,
        "limit": which.limit,
    }
