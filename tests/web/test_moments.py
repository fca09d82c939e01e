"""Moments that are none, such as PostgreSQL's infinity, in every column that has moments: the schema refuses
them, or the row is set aside and everybody who reads goes on. A column that is added later is here too."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import mainspring.store
from mainspring.admin.slot_verification.verifier import SlotVerifier
from mainspring.admin.why.asking import Why
from mainspring.errors import NotFound
from mainspring.model.job import JobFilter
from mainspring.rules.troubles import watched
from mainspring.store.unreadable import TABLES
from tests.support.door import House
from tests.support.planting import Soil

SCHEMA = Path(mainspring.store.__file__).parent / "postgres" / "schema.sql"
HISTORY = {"runs": "job_id = 777", "run_logs": "job_id = 777", "slots": "blocker = 777"}
"""Tables in partitions, which have no constraints, and which of their rows are planted here."""
WORDS: dict[str, Any] = {
    "processes.role": "worker", "audit_log.phase": "ordered", "role": "viewer", "misfire": "latest",
    "overlap": "skip", "runs.job_id": 777, "run_logs.job_id": 777, "verdict": 0, "schedule_id": 1,
}  # fmt: skip


def moments() -> list[tuple[str, str]]:
    """Every column that holds a moment, by the types that PostgreSQL has for them."""
    found, table = [], ""
    for line in SCHEMA.read_text().splitlines():
        if begun := re.match(r"CREATE TABLE mainspring\.(\w+) ", line):
            table = begun[1]
        elif column := re.match(r"    (\w+) timestamp with time zone", line):
            found.append((table, column[1]))
    return [each for each in found if not each[0].endswith("_default")]


@pytest.mark.parametrize("late", [False, True], ids=["early", "late"])
def test_every_moment_is_one_or_its_row_is_left_out(house: House, database_url: str, late: bool) -> None:
    garden = Garden(database_url, late=late)
    taken = [each for each in moments() if not garden.refuses(*each)]

    assert {table for table, _ in taken} == set(HISTORY), taken
    for table, column in taken:
        garden.put(table, column)
        house.run(everything_read, house)
        house.run(set_aside, house)  # few read run_at: a search finds what nobody has met
        assert garden.rows(f"SELECT 1 FROM {table} WHERE {HISTORY[table]}") == [], (table, column)
    aside = sorted(kind for (kind,) in garden.rows("SELECT kind FROM unreadable_rows"))
    assert aside == sorted(table for table, _ in taken)


def test_what_is_searched_for_is_every_moment_of_a_table() -> None:
    of_schema: dict[str, set[str]] = {}
    for table, column in moments():
        of_schema.setdefault(table, set()).add(column)

    assert set(HISTORY) <= set(TABLES)
    assert {name: set(table.moments) for name, table in TABLES.items()} == {
        name: of_schema[name] for name in TABLES
    }


@pytest.mark.parametrize("bad", ["infinity", "-infinity", "nonsense"])
def test_a_list_of_moments_holds_no_other(house: House, database_url: str, bad: str) -> None:
    """Of a fire that stands for several slots."""
    soil = Soil(database_url)
    far = {"infinity": 2**63 - 1, "-infinity": -(2**63)}
    listed: Any = [bad] if soil.postgres else f"[{far.get(bad, 'x')}]"
    at = "2030-01-01 00:00:00+00" if soil.postgres else 1_893_456_000_000_000
    fire = {"spec_id": 1, "last_id": 0, "until_id": 7} if soil.postgres else {"spec_id": 1, "last_id": 0}
    soil.plant("firings", None, fire, slot_at=at, combined=listed)

    house.run(set_aside, house)
    assert soil.rows("SELECT kind FROM unreadable_rows") == [("firings",)]


async def set_aside(house: House) -> None:
    await (await house.app._store()).health.set_aside()


async def everything_read(house: House) -> None:
    """What commands read beside pages, and as they read it: nothing catches what is raised."""
    store, clock = await house.app._store(), house.app._clock
    late, keep = timedelta(minutes=1), timedelta(days=9)
    report = await SlotVerifier(store, clock, keep=keep).verify(start=None, end=None, name=None, late=late)
    assert report.verifications
    for name in await store.schedules.names():
        await Why(store, clock).schedule(name)
        await store.schedules.versions(name)
    ids = [job.id for job in await store.jobs.find(JobFilter(limit=100), at=None)]
    for job_id in {777, *ids}:
        await store.jobs.get(job_id, at=None)
        await store.runs.of(job_id)
        await store.runs.logs(job_id)
        with suppress(NotFound):  # it was left out
            await Why(store, clock).job(job_id)
    await store.runs.endings([777, *ids])
    await store.runs.of_many([777, *ids], most=9)
    await store.runs.failed(among=100, limit=100)
    await store.health.watch(watched(house.app.settings.alerts), at=None)


class Garden(Soil):
    """A database with its constraints, in which any table can be given a row."""

    def __init__(self, url: str, *, late: bool) -> None:
        super().__init__(url, open_up=False)
        self._bad: Any = (
            ("infinity" if late else "-infinity") if self.postgres else (-1) ** (not late) * 2**62
        )
        self._at: Any = "2001-02-03 00:00:00+00" if self.postgres else 981_158_400_000_000

    def refuses(self, table: str, column: str) -> bool:
        """Whether the schema does. The same row with a moment there is taken."""
        if not self.postgres and column not in self._columns(table):
            return True
        self._try(table, self._row(table) | {column: self._at})
        try:
            self._try(table, self._row(table) | {column: self._bad})
        except (asyncpg.CheckViolationError, sqlite3.IntegrityError) as error:
            assert "moments_readable" in str(error) or "CHECK constraint" in str(error)
            return True
        return False

    def put(self, table: str, column: str) -> None:
        self.plant(table, None, self._row(table), **{column: self._bad})

    def _try(self, table: str, row: dict[str, Any]) -> None:
        """Insert it, and take it back."""
        if self.postgres:
            self._run(lambda connection: self._tried(connection, table, row))
            return
        with closing(self._file()) as file:
            file.execute("BEGIN")
            names = ", ".join(f":{name}" for name in row)
            file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({names})", row)
            file.execute("ROLLBACK")

    async def _tried(self, connection: Any, table: str, row: dict[str, Any]) -> None:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await self._insert(connection, table, row, copied=False)
        finally:
            await transaction.rollback()

    def _row(self, table: str) -> dict[str, Any]:
        """Something for each column that must have something."""
        self._next += 1
        row: dict[str, Any] = {}
        for name, kind in self._columns(table, needed=True).items():
            word = WORDS.get(f"{table}.{name}", WORDS.get(name))
            row[name] = self._some(name, kind) if word is None else word
        return row | ({"blocker": 777} if table == "slots" else {})

    def _some(self, name: str, kind: str) -> Any:
        if kind.startswith("timestamp") or (not self.postgres and self._is_moment(name)):
            return self._at
        if kind in ("bytea", "BLOB"):
            digest = self._next.to_bytes(32)
            return f"\\x{digest.hex()}" if self.postgres else digest
        of_kind = {"ARRAY": [], "jsonb": [], "interval": "1 second", "boolean": True, "REAL": 0.5}
        texts = {"TEXT": "[]", "text": f"x{self._next}"}
        if name in ("id", "version"):
            return self._next
        return {**of_kind, **texts}.get(kind, 1)

    def _is_moment(self, name: str) -> bool:
        return any(name == column for _, column in moments())

    def _columns(self, table: str, *, needed: bool = False) -> dict[str, str]:
        if self.postgres:
            found = self._run(
                lambda connection: connection.fetch(
                    "SELECT column_name, data_type, is_nullable = 'NO' AND column_default IS NULL"
                    " AND is_identity = 'NO' FROM information_schema.columns"
                    " WHERE table_schema = 'mainspring' AND table_name = $1",
                    table,
                )
            )
        else:
            with closing(self._file()) as file:
                found = [
                    (each[1], each[2], each[3] and each[4] is None)
                    for each in file.execute(f"PRAGMA table_info({table})")
                ]
        return {name: kind for name, kind, must in found if must or not needed}
