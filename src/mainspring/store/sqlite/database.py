"""One database: a thread that writes and, for a file, a second that reads beside it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from mainspring.clock import Clock
from mainspring.store.sqlite.connection import (
    MEMORY,
    READING,
    Checkpoints,
    Session,
    Transaction,
    is_out,
    open_reader,
    open_writer,
)
from mainspring.store.sqlite.thread import ConnectionThread
from mainspring.waiting import at_once

T = TypeVar("T")


class Database:
    """Takes work to the right thread. Nothing is opened before the first call."""

    def __init__(self, path: str, clock: Clock) -> None:
        self.path = path
        self.identity: str | None = None
        """The database's random id, once it has been read."""
        self.turn = asyncio.Lock()
        """The turn of a handler to have a transaction. The file has one write lock, and a waiting process
        polls it. Among hundreds of handlers, some would never find the lock free, and neither would the
        writes of the store."""
        self._hints = 0
        self.on_unreadable: Callable[[Exception], Coroutine[Any, Any, bool]] = _unheard
        # IMMEDIATE takes the write lock at once: a transaction that began as a reader could not
        # wait for it, and would fail as soon as another process had written.
        self._writer = ConnectionThread(
            "mainspring-sqlite-writer",
            lambda: open_writer(path),
            begin="BEGIN IMMEDIATE",
            afterwards=None if path == MEMORY else Checkpoints(path, clock).keep,
            kept=path == MEMORY,
        )
        # A database in memory belongs to its connection.
        self._reader = (
            self._writer
            if path == MEMORY
            else ConnectionThread("mainspring-sqlite-reader", lambda: open_reader(path), begin="BEGIN")
        )

    @property
    def hints(self) -> int:
        """Rises whenever this store may have made jobs due, and when what it knew of others' writes has gone
        with a connection."""
        return self._writer.hints + self._reader.opened + self._hints

    async def write(self, work: Callable[[Session], T], *, durable: bool = True) -> T:
        """One transaction, on the disk before this returns; not `durable` means that a crash of
        the machine may undo it."""
        return await self._writer.run(work, durable=durable)

    async def read(self, work: Callable[[Session], T]) -> T:
        """One snapshot, which has every write that was answered before this call."""
        return await self._reader.run(work, durable=False)

    async def fetch(self, statement: str, **params: object) -> list[sqlite3.Row]:
        """One statement. A statement that only reads does not wait for a writer."""
        return await self._alone(statement, params, durable=True)

    async def relaxed(self, statement: str, **params: object) -> list[sqlite3.Row]:
        """The same for what a crash of the machine may undo."""
        return await self._alone(statement, params, durable=False)

    async def each(
        self,
        statement: str,
        sets: Sequence[Mapping[str, object]],
        *,
        durable: bool = True,
        **params: object,
    ) -> list[sqlite3.Row]:
        """One statement for each of these sets of parameters."""
        if not sets:
            return []

        async def work(transaction: Transaction) -> list[sqlite3.Row]:
            return await transaction.each(statement, sets, **params)

        return await self.within(statement, work, durable=durable)

    async def within(
        self,
        what: str,
        work: Callable[[Transaction], Coroutine[Any, Any, T]],
        *,
        durable: bool = True,
        nested: bool = False,
    ) -> T:
        """A transaction of several; it runs on the writer's thread, so it may await nothing else."""
        return await self.write(lambda session: at_once(work(Transaction(session))), durable=durable)

    async def reading(self, what: str, work: Callable[[Transaction], Coroutine[Any, Any, T]]) -> T:
        """The same for work that only reads, on the reader's thread."""
        return await self.read(lambda session: at_once(work(Transaction(session))))

    def renamed(self, identity: str) -> None:
        """The database has this id now."""
        self.identity = identity

    async def left_out(self, error: Exception) -> bool:
        """Whether rows that cannot be read may be the cause, and have been set aside."""
        return await self.on_unreadable(error)

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """Say that jobs may be due."""
        self._hints += 1

    async def search(self, work: Callable[[Session], T]) -> T:
        """A read that may take long: of a file, on a connection of its own, so that no other call waits."""
        if self.path == MEMORY:
            return await self.read(work)
        path = self.path
        thread = ConnectionThread("mainspring-sqlite-search", lambda: open_reader(path), begin="BEGIN")
        try:
            return await thread.run(work, durable=False)
        finally:
            await thread.close()

    async def is_down(self) -> bool:
        """Whether another process keeps the file locked, or its disk fails."""
        return self.path != MEMORY and await asyncio.to_thread(is_out, self.path)

    def lend(self) -> ConnectionThread:
        """A connection for a handler's transaction: its own, where the database is a file."""
        if self.path == MEMORY:
            return self._writer
        path = self.path
        return ConnectionThread(
            "mainspring-sqlite-handler", lambda: open_writer(path), begin="BEGIN IMMEDIATE"
        )

    async def take_back(self, thread: ConnectionThread) -> None:
        """A lent connection is no longer needed."""
        if thread is not self._writer:
            await thread.close()

    async def close(self) -> None:
        """Finish what was asked for and let go. The writer goes last: the last one to leave moves
        the WAL into the database, and a reader may not."""
        await self._reader.close()
        await self._writer.close()

    async def _alone(self, statement: str, params: dict[str, object], *, durable: bool) -> list[sqlite3.Row]:
        def work(session: Session) -> list[sqlite3.Row]:
            return at_once(Transaction(session).fetch(statement, **params))

        if statement in READING:
            return await self.read(work)
        return await self.write(work, durable=durable)


def identity(session: Session) -> str:
    """The database's random id."""
    found: str = session.row("identity")["id"]
    return found


async def _unheard(error: Exception) -> bool:
    """The default: no rows are set aside."""
    return False
