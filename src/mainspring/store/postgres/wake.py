"""Hints over NOTIFY. Their rate is limited, and they are never sent inside another transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.errors import StoreError
from mainspring.store.postgres.connection import Database
from mainspring.waiting import pause

if TYPE_CHECKING:
    import asyncpg

    from mainspring.store.postgres.connection import Record

CHANNEL = "mainspring"
SHORT_REST, LONG_REST = timedelta(milliseconds=2), timedelta(milliseconds=5)
CROWD = 40
"""The number of jobs during one rest above which the rest gets longer: one hint for many jobs is better
then."""
CHECK_EVERY = timedelta(seconds=2)
DEAF = "database.url has pool=transaction and no listen=HOST:PORT, and through such a pool nobody can listen"


class Notifier:
    """Sends hints to listening workers when jobs come in: one hint at once, and one more for all jobs that
    follow within the rest. A NOTIFY takes a lock on every commit of the database and wakes every worker, so
    its rate is limited. The rest is short, and gets longer while one hint is for many jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rest = SHORT_REST
        self._wanted = 0
        self._sending: asyncio.Task[None] | None = None

    def poke(self, jobs: int = 1) -> None:
        """Ask for a hint to be sent. Never waits, never fails: a lost hint costs latency only."""
        self._wanted += jobs
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send())

    async def close(self) -> None:
        """Send what is still wanted."""
        if self._sending is not None:
            await self._sending

    async def _send(self) -> None:
        while self._wanted:
            self._wanted = 0
            try:
                await self._database.relaxed("notify")
            except StoreError:
                return  # polling finds the jobs
            await pause(self._rest)
            self._rest = next_rest(self._rest, self._wanted)


class PostgresWaker:
    """Keeps one session listening, and calls `on_hint` for every notification."""

    name = "waker"

    def __init__(self, database: Database, on_hint: Callable[[], None]) -> None:
        self.deaf = None if database.listens else DEAF
        self._database = database
        self._on_hint = on_hint
        self._connection: asyncpg.Connection[Record] | None = None

    async def tick(self) -> timedelta:
        if self.deaf:
            return CHECK_EVERY
        if self._connection is None or self._connection.is_closed():
            connection = await self._database.connect()
            try:
                await connection.add_listener(CHANNEL, lambda *_: self._on_hint())
            except BaseException:
                connection.terminate()  # kept, it would pass for one that listens
                raise
            self._connection = connection
            self._on_hint()  # for hints that were sent while this process did not listen
        return CHECK_EVERY

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()


def next_rest(rest: timedelta, jobs: int) -> timedelta:
    """How long to rest after the next hint, when so many jobs came in during this rest."""
    return min(rest * 2, LONG_REST) if jobs > CROWD else max(rest / 2, SHORT_REST)
