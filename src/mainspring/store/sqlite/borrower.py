"""Our statements on connections to SQLite that are the caller's own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from mainspring.errors import InvalidArgument, SchemaMismatch
from mainspring.model.job import Claim, NewJob
from mainspring.model.run import Settlement
from mainspring.store.borrowed.finder import awaiting, blocking
from mainspring.store.borrowed.guest import SQLITE, Awaiting, Blocking, Result
from mainspring.store.database import Stamp
from mainspring.store.effects import step_of
from mainspring.store.sqlite.connection import MEMORY, MIGRATIONS, WAL_RESET_FIXED, Session
from mainspring.store.sqlite.rows import micros, span
from mainspring.store.sqlite.settling import settle

T = TypeVar("T")


class SQLiteErrand(Generic[T]):
    """Work for a session that stands on the caller's connection."""

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
        session = Session(cast("Any", Borrowed(guest)))
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
                session.change("add_lanes", queue=queue, priority=priority)
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


class Borrowed:
    """As much of `sqlite3.Connection` as a session needs, on a guest."""

    def __init__(self, guest: Blocking) -> None:
        self._guest = guest

    def execute(self, text: str, params: Mapping[str, object]) -> Answer:
        return Answer(self._guest.run(text, params))

    def executemany(self, text: str, batch: Iterable[Mapping[str, object]]) -> None:
        for params in batch:
            self._guest.run(text, params)


class Answer:
    """As much of a cursor."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self.rowcount = result.changed

    def fetchall(self) -> list[dict[str, Any]]:
        return self._result.rows


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
