"""Sessions of a pool, a few of which are kept for the next statement, because the pool takes as long as a
statement."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy
    from asyncpg.prepared_stmt import PreparedStatement

    Record = asyncpg.Record
    Connection = PoolConnectionProxy[Record]
    Pool = asyncpg.Pool[Record]
    Prepared = PreparedStatement[Record]

AT_HAND = 2
"""Sessions that are kept out of the pool between two statements: a worker has two under way at a time."""
SETTLED = 8
"""Statements in a row after which a session is likely to stay at hand."""
RELEASE_WITHIN = timedelta(seconds=1)


class Kept:
    """A kept session, and its prepared statements. They are lost when the session goes back to the pool."""

    __slots__ = ("_prepared", "_times", "connection")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._times = 0
        self._prepared: dict[str, Prepared] = {}

    async def fetch(self, sql: str, args: list[object]) -> list[Record]:
        return await self.connection.fetch(sql, *args)

    async def repeat(self, sql: str, args: list[object]) -> list[Record]:
        """The same for a statement that comes again and again: the driver need not look for it."""
        prepared = self._prepared.get(sql)
        if prepared is None:
            self._times += 1
            if self._times <= SETTLED:
                return await self.connection.fetch(sql, *args)
            prepared = self._prepared[sql] = await self.connection.prepare(sql)
        return await prepared.fetch(*args)


class Sessions:
    """Gives the pool's sessions out, and takes them back."""

    def __init__(self, pool: Pool, timeout: timedelta) -> None:
        self._pool = pool
        self._timeout = timeout.total_seconds()
        self._at_hand: list[Kept] = []
        self._asking = 0
        self._closed = False

    def at_hand(self) -> Kept | None:
        """A kept session, if there is one: no wait is necessary."""
        while self._at_hand:
            kept = self._at_hand.pop()
            if _is_open(kept.connection):
                return kept
        return None

    def keep(self, kept: Kept) -> bool:
        """Keep a session that works. False if it cannot be kept: then the caller gives it back to the
        pool."""
        # A caller that waits at the pool cannot get a kept session. A kept session whose server has ended is
        # found at its next use.
        if self._asking or self._closed or len(self._at_hand) >= AT_HAND:
            return False
        self._at_hand.append(kept)
        return True

    async def take(self) -> Connection:
        """A session that no other caller has."""
        kept = self.at_hand()
        if kept is not None:
            return kept.connection
        self._asking += 1
        try:
            return await self._pool.acquire(timeout=self._timeout)
        finally:
            self._asking -= 1

    async def give_back(self, connection: Connection, *, well: bool) -> None:
        """Give a session back. `well` says that it works and runs no statement."""
        if not (well and self.keep(Kept(connection))):
            await self._release(connection)

    async def close(self, within: timedelta) -> None:
        """Close all sessions. Statements under way get this long to end."""
        self._closed = True
        async with asyncio.timeout(within.total_seconds()):
            while (kept := self.at_hand()) is not None:
                await self._release(kept.connection)
            await self._pool.close()

    def terminate(self) -> None:
        """Close all sessions at once."""
        self._pool.terminate()

    async def _release(self, connection: Connection) -> None:
        # If the statement was cancelled, release waits for the server to confirm it: by default as long as a
        # call may take, on top of it. A frozen server never does.
        await self._pool.release(connection, timeout=RELEASE_WITHIN.total_seconds())


def _is_open(connection: Connection) -> bool:
    """The pool takes a session back by itself when its server goes: then there is nothing left to ask."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False
