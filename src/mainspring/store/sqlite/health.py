"""What an SQLite file tells of itself."""

from __future__ import annotations

import os

from mainspring.model.health import StoreHealth
from mainspring.store.sqlite.connection import MEMORY, Session
from mainspring.store.sqlite.database import Database


class SQLiteHealth:
    """HealthStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def health(self) -> StoreHealth:
        def work(session: Session) -> StoreHealth:
            row = session.row("file_health")
            path = self._database.path
            return StoreHealth(
                engine="sqlite",
                bytes=row["pages"] * row["page_size"],
                free_bytes=row["free"] * row["page_size"],
                log_bytes=None if path == MEMORY else _size(f"{path}-wal"),
                journal=session.row("journal_mode")["journal_mode"],
            )

        return await self._database.read(work)


def _size(path: str) -> int:
    """Zero for a log that is not there: the last one who closed the file has taken it away."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
