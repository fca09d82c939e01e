"""The read side on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainspring.model.history import DeadFilter, DeadGroup, DeadJob, Standing
from mainspring.model.job import Job, JobState
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


class PostgresHistory:
    """HistoryStore on PostgreSQL, but for `members`, which the fleet answers, and what comes in pages."""

    def __init__(self, database: Database, names: Names) -> None:
        self._database = database
        self._names = names

    async def job(self, job_id: int, *, at: Stamp) -> Job | None:
        if found := await self._fetch("live_job", id=job_id, at=at):
            return rows.live_job(found[0], self._names)
        if found := await self._fetch("dead_job", id=job_id):
            return rows.dead_job(found[0], self._names).as_job()
        if found := await self._fetch("ended_job", id=job_id):
            return rows.ended_job(found[0], self._names)
        return None

    async def states(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, JobState]:
        found = await self._database.fetch("job_states", ids=sorted(job_ids), at=at)
        return {row["id"]: JobState(row["state"]) for row in found}

    async def standings(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, Standing]:
        found = await self._database.fetch("standings", ids=sorted(job_ids), at=at)
        return {row["id"]: rows.standing(row) for row in found}

    async def dead(self, which: DeadFilter) -> list[DeadJob]:
        found = await self._dead("dead_jobs", which)
        return [rows.dead_job(row, self._names) for row in found]

    async def count_dead(self, which: DeadFilter) -> int:
        params = await self._filter(which)
        if params is None:
            return 0
        [row] = await self._database.fetch("count_dead", **params, **_dead_params(which))
        count: int = row["letters"]
        return count

    async def dead_groups(self, which: DeadFilter) -> list[DeadGroup]:
        return [rows.dead_group(row, self._names) for row in await self._dead("dead_groups", which)]

    async def _dead(self, statement: str, which: DeadFilter) -> list[Record]:
        params = await self._filter(which)
        return [] if params is None else await self._fetch(statement, **params, **_dead_params(which))

    async def _fetch(self, statement: str, **params: object) -> list[Record]:
        """Rows that name a queue and a task, both learnt."""
        found = await self._database.fetch(statement, **params)
        await self._names.learn({row["queue_id"] for row in found}, {row["task_id"] for row in found})
        return found

    async def _filter(self, which: DeadFilter) -> dict[str, object] | None:
        """None when it names a queue or task that has never been seen: nothing can match."""
        await self._names.refresh()
        task_id = self._names.known_task(which.task)
        queue_id = self._names.known_queue(which.queue)
        if (which.task and task_id is None) or (which.queue and queue_id is None):
            return None
        return {"task_id": task_id, "queue_id": queue_id, "before": which.before, "limit": which.limit}


def _dead_params(which: DeadFilter) -> dict[str, object]:
    return {
        "ids": None if which.ids is None else list(which.ids),
        "reason": which.reason,
        "error": which.error,
        "text": which.text,
        "died_from": which.died_from,
        "died_before": which.died_before,
    }
