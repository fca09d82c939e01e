"""The SQLite store, made from its parts."""

from __future__ import annotations

from collections.abc import Callable

from mainspring.clock import Clock
from mainspring.store.migrations import Schema
from mainspring.store.sqlite.borrower import SQLiteLender
from mainspring.store.sqlite.connection import MIGRATIONS
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.firing import SQLiteFiring
from mainspring.store.sqlite.health import SQLiteHealth
from mainspring.store.sqlite.limits import SQLiteAdmitter, SQLitePlaces
from mainspring.store.sqlite.queue import SQLiteQueue
from mainspring.store.sqlite.wake import SQLiteWaker
from mainspring.store.sqlite.workflows import SQLiteStepJobs
from mainspring.store.store import Store, Waker


class SQLiteStore(Store):
    """Everything the engine asks of a store."""

    def __init__(self, path: str, clock: Clock) -> None:
        database = Database(path, clock)
        schema = Schema(database, MIGRATIONS)
        super().__init__(
            database,
            schema,
            SQLiteHealth(database, schema),
            SQLiteQueue(database),
            SQLitePlaces(database),
            SQLiteFiring(database),
            SQLiteLender(database),
            SQLiteAdmitter(database),
            SQLiteStepJobs(),
        )
        database.on_unreadable = self.health.left_out
        self._database = database

    def waker(self, on_hint: Callable[[], None]) -> Waker:
        return SQLiteWaker(self._database, on_hint)

    async def close(self) -> None:
        await self._database.close()
