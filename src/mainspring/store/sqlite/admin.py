"""Schema and facts of a SQLite store."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

from mainspring.errors import SchemaMismatch
from mainspring.store.migrations import pending, require_current
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import MIGRATIONS, WAL_RESET_FIXED, Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import moment


class SQLiteAdmin:
    """Admin on SQLite, but for `close`, which is the store's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def now(self, *, at: Stamp) -> datetime:
        return await self._database.read(lambda session: moment(session.now(at)))

    async def migrate(self) -> list[str]:
        applied = []
        # A transaction each: killed in between, the next run goes on from there. The write lock
        # makes a second migrator wait, and it then finds nothing to do.
        while name := await self._database.write(_migrate_one):
            applied.append(name)
        return applied

    async def verify(self) -> None:
        def work(session: Session) -> None:
            if not session.row("migrations_exist")["yes"]:
                raise SchemaMismatch(0, len(MIGRATIONS))
            require_current(MIGRATIONS, _applied(session))

        await self._database.read(work)

    async def facts(self) -> dict[str, str]:
        def work(session: Session) -> dict[str, str]:
            return {
                "engine": "sqlite",
                "version": session.row("facts")["version"],
                "journal_mode": session.row("journal_mode")["journal_mode"],
                # Its name alone: pages show this to people who have no business in the machine's folders.
                "file": Path(self._database.path).name,
                "wal_reset_bug": _wal_reset_bug(),
            }

        return await self._database.read(work)


def _migrate_one(session: Session) -> str | None:
    session.change("begin_migrations")
    steps = pending(MIGRATIONS, _applied(session))
    if not steps:
        return None
    step = steps[0]
    session.script(step.sql)
    session.change(
        "record_migration",
        version=step.version,
        name=step.name,
        checksum=step.checksum,
        now=session.now(None),
    )
    return step.name


def _applied(session: Session) -> dict[int, str]:
    return {row["version"]: row["checksum"] for row in session.rows("applied_migrations")}


def _wal_reset_bug() -> str:
    if sqlite3.sqlite_version_info >= WAL_RESET_FIXED:
        return "not affected"
    return "affected, avoided by checkpointing only under the write lock"
