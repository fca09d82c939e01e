"""What can be looked at every second, on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mainspring.model.glance import RunningJob
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

LOOK = 2000
"""How far from the head of each lane running jobs are looked for."""


class PostgresGlance:
    """GlanceStore on PostgreSQL."""

    _database: Database
    _names: Names

    async def running(self, *, limit: int) -> list[RunningJob]:
        return [
            RunningJob(
                id=row["id"],
                task=self._names.task(row["task_id"]),
                queue=self._names.queue(row["queue_id"]),
                attempt=row["failures"] + 1,
                max_attempts=row["max_attempts"],
                worker_id=row["worker_id"],
                claimed_at=row["claimed_at"],
                fraction=row["fraction"],
                note=row["note"] or "",
            )
            for row in await self._glanced("running", look=LOOK, limit=limit)
        ]

    async def _glanced(self, statement: str, **params: object) -> list[Record]:
        """Rows that name a queue and a task, both learnt."""
        found = await self._database.fetch(statement, **params)
        await self._names.learn({row["queue_id"] for row in found}, {row["task_id"] for row in found})
        return found
