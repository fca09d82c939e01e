"""The parts joined into one SQLite store."""

from __future__ import annotations

from collections.abc import Callable

from mainspring.clock import Clock
from mainspring.store.migrations import Schema
from mainspring.store.ports import Waker
from mainspring.store.sqlite.connection import MIGRATIONS
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.dead import SQLiteDeadLetters
from mainspring.store.sqlite.firing import SQLiteFiring
from mainspring.store.sqlite.glance import SQLiteGlance
from mainspring.store.sqlite.health import SQLiteHealth
from mainspring.store.sqlite.jobs import SQLiteJobs
from mainspring.store.sqlite.limits import SQLiteAdmitter
from mainspring.store.sqlite.loan import SQLiteLender
from mainspring.store.sqlite.pages import SQLitePages
from mainspring.store.sqlite.places import SQLitePlaces
from mainspring.store.sqlite.requests import SQLiteRequests
from mainspring.store.sqlite.wake import SQLiteWaker
from mainspring.store.sqlite.workflows import SQLiteStepJobs
from mainspring.store.store import Nouns
from mainspring.store.unreadable import reads_go_on


@reads_go_on
class SQLiteStore(
    SQLiteJobs,
    SQLiteDeadLetters,
    SQLiteRequests,
    SQLiteGlance,
    SQLitePages,
    Nouns,
):
    """Everything the engine asks of a store. Each part names its own tables; they share a database."""

    def __init__(self, path: str, clock: Clock) -> None:
        database = Database(path, clock)
        SQLiteJobs.__init__(self, database)
        schema = Schema(database, MIGRATIONS)
        Nouns.__init__(
            self,
            database,
            schema,
            SQLiteHealth(database, schema),
            SQLitePlaces(database),
            SQLiteFiring(database),
            SQLiteLender(database),
            SQLiteAdmitter(database),
            SQLiteStepJobs(),
        )
        database.on_unreadable = self.health.left_out

    def waker(self, on_hint: Callable[[], None]) -> Waker:
        return SQLiteWaker(self._database, on_hint)

    async def close(self) -> None:
        await self._database.close()
