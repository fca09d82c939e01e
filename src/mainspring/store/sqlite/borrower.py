"""Calls of the store on callers' own connections to SQLite, and transactions for handlers.

A handler's transaction is one call of the thread of a connection, which runs the handler's statements until
the commit or the rollback. On a file, each such transaction has its own connection. A database in memory has
one connection.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

from mainspring import forks
from mainspring.errors import (
    AnswerLost,
    InvalidArgument,
    SchemaMismatch,
    StoreError,
    StoreUnavailable,
    UsageError,
)
from mainspring.model.job import Claim, NewJob
from mainspring.model.run import Settlement
from mainspring.store.borrowed.finder import awaiting, blocking
from mainspring.store.borrowed.guest import SQLITE, Awaiting, Blocking, Lent, Result, SQLiteGuest
from mainspring.store.database import Stamp
from mainspring.store.effects import step_of
from mainspring.store.sqlite.connection import MEMORY, MIGRATIONS, WAL_RESET_FIXED, Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, span
from mainspring.store.sqlite.settling import named, settle

T = TypeVar("T")
TURN_WITHIN = timedelta(seconds=30)
"""How long a handler waits for its turn to have a transaction."""
Command = tuple[Callable[[Session], Any], "asyncio.Future[Any]"]


class SQLiteErrand(Generic[T]):
    """Work for a session on the caller's connection."""

    def __init__(self, path: str, work: Callable[[Session], T]) -> None:
        self._path = path
        self._work = work

    def run(self, tx: object) -> T:
        guest = blocking(tx)
        self._require(guest, tx)
        return self._perform(guest)

    async def arun(self, tx: object) -> T:
        guest = awaiting(tx)
        self._require(guest, tx)
        return await guest.blocking(self._perform)

    def _perform(self, guest: Blocking) -> T:
        session = Session(cast("Any", _Borrowed(guest)))
        self._require_same_file(session)
        _require_schema(session)
        if sqlite3.sqlite_version_info < WAL_RESET_FIXED:
            session.rows("no_autocheckpoint")  # see connection.py; the store's own writer does it instead
        return self._work(session)

    def _require(self, guest: Blocking | Awaiting, tx: object) -> None:
        if guest.dialect != SQLITE:
            raise InvalidArgument(
                "tx", tx, f"a connection to the app's own database, which is SQLite, not {guest.dialect}"
            )

    def _require_same_file(self, session: Session) -> None:
        file = next(row["file"] for row in session.rows("database_list") if row["name"] == "main")
        if (self._path == MEMORY) != (not file) or (file and not _same(file, self._path)):
            raise InvalidArgument(
                "tx", file or MEMORY, f"a connection to the app's own database, {self._path}"
            )


class SQLiteBorrower:
    """Borrower on SQLite."""

    def __init__(self, path: str) -> None:
        self._path = path

    def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> SQLiteErrand[list[int]]:
        def work(session: Session) -> list[int]:
            now = session.now(at)
            ids: list[int] = [session.row("put_jobs", **_job(job, now))["id"] for job in jobs]
            for queue, priority in sorted({(job.queue, job.priority) for job in jobs}):
                session.change("add_priority_levels", queue=queue, priority=priority)
            return ids

        return SQLiteErrand(self._path, work)

    def settle(self, settlement: Settlement, *, at: Stamp) -> SQLiteErrand[bool]:
        return SQLiteErrand(self._path, lambda session: bool(settle(session, [settlement], session.now(at))))

    def step(self, job_id: int, name: str) -> SQLiteErrand[bool]:
        return SQLiteErrand(self._path, lambda session: bool(session.rows("step", job_id=job_id, name=name)))

    def record_step(self, claim: Claim, name: str, *, at: Stamp) -> SQLiteErrand[bool]:
        def work(session: Session) -> bool:
            return bool(session.rows("record_step", **step_of(claim, name), now=session.now(at)))

        return SQLiteErrand(self._path, work)


class SQLiteConnection(Lent):
    """What a handler is given: the calls of asyncpg's connection, with `?` for each parameter."""

    def __init__(self, ask: Callable[[Callable[[Session], Any]], Any]) -> None:
        self._ask = ask

    async def execute(self, query: str, *args: object) -> str:
        """Run a statement; answer a command tag, such as "INSERT 1"."""
        count = await self._ask(lambda session: session.connection.execute(query, args).rowcount)
        verb = query.split(maxsplit=1)[0].upper()
        return verb if count < 0 else f"{verb} {count}"

    async def executemany(self, query: str, args: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each set of parameters."""
        await self._ask(lambda session: session.connection.executemany(query, args))

    async def fetch(self, query: str, *args: object) -> list[sqlite3.Row]:
        """Every row."""
        found: list[sqlite3.Row] = await self._ask(
            lambda session: session.connection.execute(query, args).fetchall()
        )
        return found

    async def fetchrow(self, query: str, *args: object) -> sqlite3.Row | None:
        """The first row, or None."""
        found = await self.fetch(query, *args)
        return found[0] if found else None

    async def fetchval(self, query: str, *args: object) -> Any:
        """The first value of the first row, or None."""
        row = await self.fetchrow(query, *args)
        return None if row is None else row[0]

    def guest(self) -> Awaiting:
        return _Guest(self._ask)


class SQLiteLoan:
    """One transaction of one handler."""

    def __init__(self, database: Database, on_end: Callable[[], None]) -> None:
        self._database = database
        self._on_end = on_end
        self._thread = database.lend()
        self._commands: SimpleQueue[Command | Callable[[Session], Any]] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.create_future()
        self._ended = False
        self.connection = SQLiteConnection(self._ask)

    async def begin(self) -> None:
        """Take the write lock."""
        self._serving = self._loop.create_task(self._thread.run(self._serve, durable=True))
        try:
            await asyncio.wait([self._begun, self._serving], return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            self._begun.cancel()
            await self.rollback()
            raise
        if not self._begun.done():
            await self._leave()
            await self._serving  # it says why

    async def commit(self, settlement: Settlement, *, at: Stamp) -> bool:
        def last(session: Session) -> None:
            if not session.connection.in_transaction:
                raise UsageError("the handler has ended the transaction that it was given")
            if not settle(session, [settlement], session.now(at)):
                raise _Undo

        try:
            await self._end(last)
        except _Undo:
            return False
        return True

    async def rollback(self) -> None:
        with suppress(_Undo, StoreError):  # nothing remains either way: there was no COMMIT
            await self._end(_undo)

    async def committed(self, settlement: Settlement, lost: AnswerLost) -> bool:
        def work(session: Session) -> bool:
            return bool(session.rows("recorded_runs", claims=listed([named(settlement)])))

        return await self._database.write(work, durable=False)

    async def _end(self, last: Callable[[Session], None]) -> None:
        self._ended = True
        self._commands.put(last)
        try:
            await self._serving
        finally:
            await self._leave()

    async def _leave(self) -> None:
        try:
            await self._database.take_back(self._thread)
        finally:
            on_end, self._on_end = self._on_end, _nothing
            on_end()

    async def _ask(self, work: Callable[[Session], T]) -> T:
        if self._ended:
            raise UsageError("this transaction has ended")
        answer: asyncio.Future[T] = self._loop.create_future()
        self._commands.put((work, answer))
        return await answer

    def _serve(self, session: Session) -> None:
        """On the connection's thread, inside the transaction."""
        self._tell(self._begun, None, None)
        with forks.rest.lent():
            while isinstance(command := self._commands.get(), tuple):
                work, answer = command
                try:
                    self._tell(answer, work(session), None)
                except Exception as error:  # noqa: BLE001  not swallowed: the handler gets it
                    self._tell(answer, None, error)
        command(session)

    def _tell(self, answer: asyncio.Future[Any], value: object, error: Exception | None) -> None:
        with suppress(RuntimeError):  # its event loop has ended
            self._loop.call_soon_threadsafe(_resolve, answer, value, error)


class SQLiteLender:
    """Lender on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def borrower(self) -> SQLiteBorrower:
        return SQLiteBorrower(self._database.path)

    async def lend(self) -> SQLiteLoan:
        turn = self._database.turn
        try:
            async with asyncio.timeout(TURN_WITHIN.total_seconds()):
                await turn.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"transactions of other handlers kept the SQLite database for {TURN_WITHIN.seconds} s"
            ) from None
        loan = SQLiteLoan(self._database, turn.release)
        await loan.begin()
        return loan


class _Undo(Exception):
    """Ends the transaction without a trace."""


class _Borrowed:
    """As much of `sqlite3.Connection` as a session needs, on a guest."""

    def __init__(self, guest: Blocking) -> None:
        self._guest = guest

    def execute(self, text: str, params: Mapping[str, object]) -> _Answer:
        return _Answer(self._guest.run(text, params))

    def executemany(self, text: str, batch: Iterable[Mapping[str, object]]) -> None:
        for params in batch:
            self._guest.run(text, params)


class _Answer:
    """As much of a cursor."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self.rowcount = result.changed

    def fetchall(self) -> list[dict[str, Any]]:
        return self._result.rows


class _Guest:
    dialect = SQLiteGuest.dialect

    def __init__(self, ask: Callable[[Callable[[Session], Any]], Any]) -> None:
        self._ask = ask

    def check(self) -> None:
        """There is always a transaction: that of the loan."""

    async def run(self, text: str, params: Any) -> Any:
        return await self._ask(lambda session: SQLiteGuest(session.connection).run(text, params))

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        def inside(session: Session) -> T:
            session.hint()  # it may put jobs in
            return work(SQLiteGuest(session.connection))

        done: T = await self._ask(inside)
        return done


def _require_schema(session: Session) -> None:
    version = session.row("schema_version")["version"] if session.row("migrations_exist")["yes"] else 0
    if version < len(MIGRATIONS):
        raise SchemaMismatch(version, len(MIGRATIONS))


def _same(file: str, path: str) -> bool:
    return os.path.realpath(file) == os.path.realpath(path)


def _job(job: NewJob, now: int) -> dict[str, object]:
    run_at = micros(job.run_at)
    return {
        "queue": job.queue,
        "task": job.task,
        "priority": job.priority,
        "run_at": now + span(job.delay) if run_at is None else run_at,
        "max_attempts": job.max_attempts,
        "payload": job.payload,
        "trace": job.trace,
        "now": now,
    }


def _resolve(answer: asyncio.Future[Any], value: object, error: Exception | None) -> None:
    if answer.done():
        return  # its caller was cancelled
    if error is not None:
        answer.set_exception(error)
    else:
        answer.set_result(value)


def _undo(session: Session) -> None:
    raise _Undo


def _nothing() -> None:
    """The end of the loan was reported already."""
