"""What an SQLite file tells of itself."""

from __future__ import annotations

import os
import sqlite3

from mainspring.model.health import StoreHealth, UnreadableRow
from mainspring.store.sqlite.connection import MEMORY, Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import moment


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
                unreadable=tuple(aside(row) for row in session.rows("unreadable_rows")),
            )

        return await self._database.read(work)

    async def damage(self) -> list[str] | None:
        def work(session: Session) -> list[str]:
            found = [str(row["quick_check"]) for row in session.rows("quick_check")]
            return [] if found == ["ok"] else found

        return await self._database.read(work)


def aside(row: sqlite3.Row) -> UnreadableRow:
    return UnreadableRow(table=row["kind"], key=row["ref"], at=moment(row["at"]))


def _size(path: str) -> int:
    """Zero for a log that is not there: the last one who closed the file has taken it away."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0
