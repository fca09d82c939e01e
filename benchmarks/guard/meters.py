"""What is counted beside the interpreter: statements and bytes of log, by the store that runs them."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import asyncpg

from benchmarks.bench import Bench
from benchmarks.guard.counts import Counts
from benchmarks.guard.relay import Relay


class Meter(Protocol):
    """A database, and what was asked of it so far."""

    bench: Bench

    async def settle(self) -> None:
        """Write back what earlier work left to be written."""

    async def read(self) -> Counts:
        """Statements, trips and log since some beginning. What is asked for the reading is not in it."""


@dataclass
class SqliteMeter:
    """Every connection of this process tells each statement it runs, those of triggers included."""

    bench: Bench
    guest: sqlite3.Connection
    """The last one to leave would move the log into the database: somebody stays."""
    _run: deque[str] = field(default_factory=deque)

    async def settle(self) -> None:
        self.guest.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def read(self) -> Counts:
        log = Path(f"{self.bench.path}-wal")
        return Counts(statements=len(self._run), log=log.stat().st_size if log.exists() else 0)

    def connect(self, *arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = _connect(*arguments, **options)
        # C calls C: being counted costs no instruction that would be counted.
        connection.set_trace_callback(self._run.append)
        return connection


_connect = sqlite3.connect


@contextmanager
def sqlite_meter(folder: Path) -> Iterator[SqliteMeter]:
    bench = Bench("sqlite", f"sqlite:///{folder}/guard.db")
    with closing(_connect(bench.path)) as guest:
        guest.execute("PRAGMA journal_mode = WAL")
        meter = SqliteMeter(bench, guest)
        with mock.patch.object(sqlite3, "connect", meter.connect):
            yield meter


@dataclass
class PostgresMeter:
    """Statements by the wire, the log by the server's word; nobody else may use the server meanwhile."""

    bench: Bench
    relay: Relay
    direct: str
    """The server's own address: a reading is no statement of the work."""

    async def settle(self) -> None:
        await self.bench.execute("CHECKPOINT")

    async def read(self) -> Counts:
        connection = await asyncpg.connect(self.direct)
        try:
            log = await connection.fetchval("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")
        finally:
            await connection.close()
        return Counts(statements=self.relay.statements, trips=self.relay.trips, log=float(log))
