"""A store that was filled by the first schema goes on working after the migrations since."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from mainspring.model.schedule import Opening, Overlap
from mainspring.store.migrations import Migration, migrations
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock

NEXT = datetime(2030, 1, 1, 0, 1, tzinfo=UTC)
MICROS = int(NEXT.timestamp() * 1_000_000)
MINUTE = timedelta(minutes=1)

_OLD_POSTGRES = """
INSERT INTO mainspring.queues (name) VALUES ('default');
INSERT INTO mainspring.tasks (name) VALUES ('t');
INSERT INTO mainspring.lanes VALUES (1, 0);
INSERT INTO mainspring.specs (trigger, next_at, planned)
VALUES ('gone', NULL, true), ('kept', '2030-01-01 00:01Z', false);
DELETE FROM mainspring.specs WHERE trigger = 'gone';
INSERT INTO mainspring.schedules (name, spec_id, task_id, queue_id, priority, max_attempts, payload,
                                  misfire, catch_up, active_from)
VALUES ('s', 2, 1, 1, 0, 3, '{}', 'latest', '1 day', '2029-12-31 00:00Z');
"""
_OLD_SQLITE = f"""
INSERT INTO lanes VALUES ('default', 0);
INSERT INTO specs (id, trigger, next_at, planned) VALUES (2, 'kept', {MICROS}, 0);
INSERT INTO schedules (name, spec_id, task, queue, priority, max_attempts, payload, misfire, catch_up,
                       active_from)
VALUES ('s', 2, 't', 'default', 0, 3, X'7b7d', 'latest', 86400000000, 0);
"""


async def _fill_postgres(url: str, first: Migration) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE SCHEMA mainspring")
        await connection.execute(
            "CREATE TABLE mainspring.migrations (version int PRIMARY KEY, name text NOT NULL,"
            " checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        await connection.execute(first.sql)
        await connection.execute(
            "INSERT INTO mainspring.migrations VALUES ($1, $2, $3)", first.version, first.name, first.checksum
        )
        await connection.execute(_OLD_POSTGRES)
    finally:
        await connection.close()


def _fill_sqlite(path: str, first: Migration) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL,"
            " checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT;"
        )
        connection.executescript(first.sql)
        connection.execute(
            "INSERT INTO migrations VALUES (?, ?, ?, 0)", (first.version, first.name, first.checksum)
        )
        connection.executescript(_OLD_SQLITE)


@pytest.fixture
def old_store(backend: str, empty_database_url: str, run: Any, clock: ManualClock) -> Any:
    """A store of the first schema with a schedule in it, opened by today's code."""
    package = "mainspring.store.sqlite" if backend == "sqlite" else "mainspring.store.postgres"
    first = migrations(package)[0]
    if backend == "sqlite":
        _fill_sqlite(empty_database_url.removeprefix("sqlite:///"), first)
    else:
        run(_fill_postgres(empty_database_url, first))
    store = open_store(empty_database_url, clock=clock)
    yield store
    run(store.close())


def test_an_old_schedule_goes_on_after_the_migrations(old_store: Any, run: Any, clock: ManualClock) -> None:
    applied = run(old_store.migrate())
    run(old_store.verify())
    clock.advance(MINUTE)

    [schedule] = run(old_store.schedules())
    _, [spec] = run(old_store.due_specs(limit=10, at=clock.stamp()))
    opening = Opening(
        spec_id=spec.id,
        expected=spec.next_at,
        slot_at=spec.next_at,
        since=None,
        next_at=spec.next_at + MINUTE,
    )
    run(old_store.open_fires([opening], at=clock.stamp()))
    chunk = run(old_store.fire(limit=10, at=clock.stamp()))

    assert applied[0].startswith("0002")
    assert (schedule.name, schedule.overlap, schedule.paused_at) == ("s", Overlap.SKIP, None)
    assert schedule.catch_up is None, "a day was the default; the default has no bound"
    assert (spec.id, spec.trigger, spec.next_at, spec.catch_up) == (2, "kept", NEXT, None)
    assert chunk.fired == 1
