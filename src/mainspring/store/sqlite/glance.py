"""What can be looked at every second, on SQLite."""

from __future__ import annotations

from mainspring.model.glance import RunningJob
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import moment


class SQLiteGlance:
    """GlanceStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def running(self, *, limit: int) -> list[RunningJob]:
        def work(session: Session) -> list[RunningJob]:
            return [
                RunningJob(
                    id=row["id"],
                    task=row["task"],
                    queue=row["queue"],
                    attempt=row["failures"] + 1,
                    max_attempts=row["max_attempts"],
                    worker_id=row["worker_id"],
                    claimed_at=moment(row["claimed_at"]),
                    fraction=row["fraction"],
                    note=row["note"] or "",
                )
                for row in session.rows("running", limit=limit)
            ]

        return await self._database.read(work)
