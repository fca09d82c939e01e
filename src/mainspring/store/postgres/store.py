"""The PostgreSQL store, made from its parts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.config.url import database_address
from mainspring.store.migrations import Schema
from mainspring.store.postgres.borrower import PostgresLender
from mainspring.store.postgres.connection import MIGRATIONS, Database
from mainspring.store.postgres.firing import PostgresFiring
from mainspring.store.postgres.health import PostgresHealth
from mainspring.store.postgres.hints import Hints
from mainspring.store.postgres.inserting import Batches
from mainspring.store.postgres.limits import Lines, PostgresAdmitter, PostgresPlaces
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.queue import PostgresQueue
from mainspring.store.postgres.wake import Notifier, PostgresWaker
from mainspring.store.postgres.workflows import Definitions, PostgresStepJobs
from mainspring.store.store import Store, Waker

POOL_SIZE = 4
"""The number of sessions of each kind (durable, relaxed) that one store opens, at most."""


class PostgresStore(Store):
    """Everything the engine asks of a store."""

    def __init__(
        self, url: str, clock: Clock, *, timeout: timedelta, size: int = POOL_SIZE, hints: bool = True
    ) -> None:
        database = Database(database_address(url), timeout=timeout, size=size)
        names, lines = Names(database), Lines(database)
        notifier = Notifier(database)
        places = Hints(clock, enabled=hints)

        def hint(jobs: int, earlier: bool) -> None:
            if earlier:
                places.put_back()
            notifier.poke(jobs)

        database.on_hint = hint
        batches = Batches(database, names, lines)
        step_jobs = PostgresStepJobs(Definitions(database), batches)
        schema = Schema(database, MIGRATIONS)
        super().__init__(
            database,
            schema,
            PostgresHealth(database, schema),
            PostgresQueue(database, names, batches, step_jobs, notifier, places, clock),
            PostgresPlaces(names, lines),
            PostgresFiring(database),
            PostgresLender(database),
            PostgresAdmitter(database),
            step_jobs,
        )
        database.on_unreadable = self.health.left_out
        self._database, self._notifier = database, notifier

    def waker(self, on_hint: Callable[[], None]) -> Waker:
        return PostgresWaker(self._database, on_hint)

    async def close(self) -> None:
        await self._notifier.close()
        await self._database.close()
