"""Connections to SQLite: opening, pragmas, named statements, and the one place that reads driver errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import timedelta
from typing import cast
from urllib.parse import quote

from mainspring import forks
from mainspring.clock import Clock
from mainspring.errors import SchemaMismatch, StoreError, StoreFull, StoreUnavailable, shown
from mainspring.store.database import Stamp
from mainspring.store.migrations import migrations
from mainspring.store.sqlite.rows import all_bound, micros
from mainspring.store.statements import load, reading, takes_now
from mainspring.waiting import NOW, nap

PACKAGE = "mainspring.store.sqlite"
SQL = load("sqlite")
READING = reading(SQL)
"""Statements that the reading thread can run."""
_TIMED = frozenset(name for name, text in SQL.items() if takes_now(text))
_SEVERAL = {name: text.split(";\n") for name, text in SQL.items() if ";\n" in text}
_ANSWERING = frozenset(name for name, text in SQL.items() if "RETURNING" in text)
MIGRATIONS = migrations(PACKAGE)

MEMORY = ":memory:"
OLDEST = (3, 37, 0)
"""The first SQLite with STRICT tables; RETURNING is older."""
WAL_RESET_FIXED = (3, 51, 3)

BUSY_TIMEOUT = timedelta(seconds=5)
SLICE = timedelta(milliseconds=250)
"""How long SQLite waits for a lock at a time, for it cannot be interrupted for a fork."""
LOOK_EVERY, LOOKS = timedelta(microseconds=500), 1000
OUT_LOOK_EVERY, OUT_LOOKS = timedelta(milliseconds=5), 20
"""How long the lock must not be free, without a commit of any process, before the file counts as out."""
WAL_TRIES = 20
CHECKPOINT_ABOVE = 8 * 1024 * 1024
CHECKPOINT_TIMEOUT = timedelta(milliseconds=100)
CHECKPOINT_REST = timedelta(seconds=1)

_PRAGMAS = (
    # SQLite before 3.51.3 may lose commits when one connection resets the WAL while another
    # checkpoints. Automatic checkpoints are PASSIVE: they leave the write lock free, so a commit may
    # reset the WAL under them. Ours (see Checkpoints) hold it.
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -65536",
)
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
_NO_SCHEMA = ("no such table", "no such column", "has no column")


class Session:
    """Named statements on one connection, inside one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.hinted = False

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for statements of a handler."""
        return self._connection

    def rows(self, statement: str, **params: object) -> list[sqlite3.Row]:
        """Every row the statement answers; of one that is several, what each of them answers in turn."""
        if statement in _SEVERAL:
            run = self._connection.execute
            return [row for each in _SEVERAL[statement] for row in run(each, params).fetchall()]
        return self._connection.execute(SQL[statement], params).fetchall()

    def row(self, statement: str, **params: object) -> sqlite3.Row:
        """The row of a statement that always answers exactly one."""
        [row] = self.rows(statement, **params)
        return row

    def change(self, statement: str, **params: object) -> int:
        """Run a statement that answers no rows; say how many it changed."""
        return self._connection.execute(SQL[statement], params).rowcount

    def each(self, statement: str, batch: Iterable[Sequence[object] | Mapping[str, object]]) -> None:
        """Run a statement once for each set of parameters."""
        self._connection.executemany(SQL[statement], batch)

    def script(self, text: str) -> None:
        """Run the statements of a script inside this transaction; `executescript` would commit it."""
        statement = ""
        for line in text.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._connection.execute(statement)
                statement = ""
        if statement.strip():
            self._connection.execute(statement)

    def now(self, at: Stamp) -> int:
        """The stamp, or else the database's clock."""
        now: int = self.row("clock", at=micros(at))["now"]
        return now

    def hint(self) -> None:
        """Say that jobs may be due once this transaction has committed."""
        self.hinted = True


class Transaction:
    """The seam's transaction on a session. Its methods never wait, so that the writer's thread can run what
    awaits them. A session may serve several, one after the other, that are committed together."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._now: int | None = None

    async def fetch(self, statement: str, **params: object) -> list[sqlite3.Row]:
        return self.session.rows(statement, **self._bound(statement, params))

    async def each(
        self, statement: str, sets: Sequence[Mapping[str, object]], **params: object
    ) -> list[sqlite3.Row]:
        if not sets:
            return []
        common = self._bound(statement, params)
        batch = [common | all_bound(each) for each in sets]
        if statement in _ANSWERING:
            return [row for each in batch for row in self.session.rows(statement, **each)]
        self.session.each(statement, batch)
        return []

    async def script(self, text: str) -> None:
        self.session.script(text)

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        self.session.hint()  # workers on a file look at everything anyway

    def _bound(self, statement: str, params: dict[str, object]) -> dict[str, object]:
        """The parameters as SQLite keeps them, with the moment of the transaction where it is asked for."""
        at = cast("Stamp", params.pop("at", None))
        found = all_bound(params)
        if statement in _TIMED and "now" not in found:
            found["now"] = self.now(at)
        return found

    def now(self, at: Stamp) -> int:
        """The stamp, or else the moment at which this was first asked for."""
        if self._now is None:
            self._now = self.session.now(at)
        return self._now


class Checkpoints:
    """Moves the WAL back into the database once it has grown, from the writer's own thread.

    TRUNCATE holds the write lock, so that no commit can reset the WAL meanwhile (see _PRAGMAS).
    """

    def __init__(self, path: str, clock: Clock) -> None:
        self._wal = wal(path)
        self._clock = clock
        self._not_before = clock.monotonic()

    def keep(self, connection: sqlite3.Connection) -> None:
        """Checkpoint if it is time. A busy one is no error: it is tried again after a rest."""
        with suppress(OSError):
            if os.stat(self._wal).st_size > CHECKPOINT_ABOVE and self._clock.monotonic() >= self._not_before:
                self._not_before = self._clock.monotonic()
                if self._is_busy(connection):
                    self._not_before += CHECKPOINT_REST.total_seconds()

    def _is_busy(self, connection: sqlite3.Connection) -> bool:
        _wait_for_locks(connection, CHECKPOINT_TIMEOUT)
        try:
            [busy, _, _] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return bool(busy)
        except sqlite3.Error:
            return True  # the next call meets the same error and raises it
        finally:
            _wait_for_locks(connection, NOW)


def wal(path: str) -> str:
    """Where SQLite keeps its log: beside the file, wherever links lead."""
    return f"{os.path.realpath(path)}-wal"


def open_writer(path: str) -> sqlite3.Connection:
    """The connection that writes; it makes the file if there is none."""
    connection = _open(path)
    try:
        for _ in range(WAL_TRIES):
            if _switched_to_wal(connection):
                break
            # The switch fails at once where it should wait; beginning to write does wait.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        # From here on `begin` waits for locks, not SQLite.
        _wait_for_locks(connection, NOW)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def open_reader(path: str) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = _open(path)
    connection.execute("PRAGMA query_only = 1")
    return connection


def is_out(path: str) -> bool:
    """Whether no process on this machine can write the file at this moment: it is locked, or its disk fails.
    If the file cannot be opened, only this process may have the problem."""
    forks.refuse_inherited(path)
    address = f"file:{quote(os.path.abspath(path))}?mode=rw"
    try:
        with (
            forks.rest.awaited(),
            closing(sqlite3.connect(address, uri=True, timeout=0, isolation_level=None)) as connection,
        ):
            # One try may meet the commit of another process, which can write.
            before = _commits(connection)
            for _ in range(OUT_LOOKS):
                if _begun(connection, "BEGIN IMMEDIATE") is None:
                    connection.execute("ROLLBACK")
                    return False
                nap(OUT_LOOK_EVERY)
            return _commits(connection) == before
    except sqlite3.Error as error:
        return _code(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR)


def begin(connection: sqlite3.Connection, statement: str) -> bool:
    """Open a transaction, with the lock that it asks for; false when it gave way to a fork before it had the
    lock. SQLite's own wait looks ever more seldom, in the end every 100 ms: beside a process that writes
    without a rest it might not find it free for seconds."""
    for _ in range(LOOKS):
        if _begun(connection, statement) is None:
            return True
        if forks.rest.wanted:
            return False
        nap(LOOK_EVERY)
    # The other process has a long transaction, or is stopped.
    _wait_for_locks(connection, SLICE)
    left = (BUSY_TIMEOUT - LOOKS * LOOK_EVERY) // SLICE
    try:
        while (busy := _begun(connection, statement)) is not None:
            left -= 1
            if forks.rest.wanted:
                return False
            if left <= 0:
                raise busy
        return True
    finally:
        _wait_for_locks(connection, NOW)


def set_durable(connection: sqlite3.Connection, durable: bool) -> None:
    """Whether commits wait for the disk; only outside a transaction."""
    connection.execute("PRAGMA synchronous = FULL" if durable else "PRAGMA synchronous = NORMAL")


def translated(error: Exception, connection: sqlite3.Connection | None) -> Exception:
    """The error as callers know it; one that is not the driver's stays what it is."""
    if not isinstance(error, sqlite3.Error):
        return error
    told = _told(error, connection)
    told.__cause__ = error
    return told


def is_full(error: sqlite3.Error) -> bool:
    """Whether there was no room on the disk."""
    return _code(error) in _NO_ROOM


def is_io_error(error: sqlite3.Error) -> bool:
    """Whether the disk itself failed."""
    return _code(error) & 0xFF == sqlite3.SQLITE_IOERR


def _commits(connection: sqlite3.Connection) -> int:
    """A number that changes whenever another connection has committed."""
    found: int = connection.execute("PRAGMA data_version").fetchone()[0]
    return found


def _begun(connection: sqlite3.Connection, statement: str) -> sqlite3.Error | None:
    """None, or the error if another connection has the lock."""
    try:
        connection.execute(statement)
    except sqlite3.OperationalError as error:
        if _code(error) & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        return error
    return None


def _told(error: sqlite3.Error, connection: sqlite3.Connection | None) -> StoreError:
    if is_full(error):
        return StoreFull(f"the disk of the SQLite database is full ({error}); nothing was written")
    match _code(error) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreUnavailable(f"the SQLite database stayed locked by another connection ({error})")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
            return StoreUnavailable(f"the SQLite database cannot be reached ({error})")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_NOMEM | sqlite3.SQLITE_PROTOCOL:
            return StoreUnavailable(f"the SQLite database cannot be written now ({error})")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(
                f"the file is damaged or is no SQLite database ({error}); restore it from a backup"
            )
        case sqlite3.SQLITE_ERROR if any(words in str(error) for words in _NO_SCHEMA):
            return SchemaMismatch(_version(connection), len(MIGRATIONS), str(error))
        case _:
            return StoreError(f"SQLite refused the call: {error}")


def _code(error: sqlite3.Error) -> int:
    """Zero for errors of the driver itself, which carry none."""
    return getattr(error, "sqlite_errorcode", 0)


def _version(connection: sqlite3.Connection | None) -> int:
    if connection is not None:
        with suppress(sqlite3.Error):
            return max((version for version, _ in connection.execute(SQL["applied_migrations"])), default=0)
    return 0


def _open(path: str) -> sqlite3.Connection:
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreError(f"SQLite 3.37 or newer is needed; this Python has {sqlite3.sqlite_version}")
    if path != MEMORY:
        forks.refuse_inherited(path)
        _create(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        _wait_for_locks(connection, BUSY_TIMEOUT)
        for pragma in _PRAGMAS:
            connection.execute(pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _switched_to_wal(connection: sqlite3.Connection) -> bool:
    """Switch to WAL; false when another process, which may be at the same, is in the way."""
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if _code(error) & 0xFF == sqlite3.SQLITE_BUSY:
            return False
        raise
    return True


def _create(path: str) -> None:
    """A new file is its owner's alone: payloads may be private. The -wal and -shm take its mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        return
    except FileNotFoundError as error:
        folder = os.path.dirname(os.path.abspath(path))
        if os.path.isdir(folder):
            raise StoreUnavailable(f"database: {shown(path)} cannot be made ({error.strerror})") from error
        raise StoreUnavailable(f"database: the directory {shown(folder)} does not exist") from error
    except OSError as error:
        raise StoreUnavailable(f"database: {shown(path)} cannot be made ({error.strerror})") from error


def _wait_for_locks(connection: sqlite3.Connection, at_most: timedelta) -> None:
    connection.execute(f"PRAGMA busy_timeout = {at_most // timedelta(milliseconds=1)}")
