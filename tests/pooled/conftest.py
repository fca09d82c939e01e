"""Stores behind PgBouncer in transaction mode, which has fewer sessions than they have connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.support.desk import Desk
from tests.support.pgbouncer import MISSING, PgBouncer, found

SESSIONS = 3
"""A store has up to eight connections, and lends others: they have to share."""


@pytest.fixture(scope="session")
def pooler(databases: Any) -> Iterator[PgBouncer]:
    """One for all tests of a process; it opens sessions to whatever database is asked for."""
    if found() is None:
        pytest.skip(MISSING)
    opened = PgBouncer(databases.url("postgres"), servers=SESSIONS)
    try:
        yield opened
    finally:
        opened.stop()


@pytest.fixture
def backend() -> str:
    return "postgres"


@pytest.fixture
def database_url(backend: str, pooler: PgBouncer, postgres_url: str) -> str:
    return pooler.url(postgres_url)


@pytest.fixture
def empty_database_url(backend: str, pooler: PgBouncer, new_database: Any) -> str:
    return pooler.url(new_database(migrated=False))


@pytest.fixture
def store(database_url: str, run: Any, clock: ManualClock) -> Iterator[Any]:
    opened = open_store(database_url, clock=clock)
    try:
        yield opened
    finally:
        run(opened.close())


@pytest.fixture
def desk(store: Any, clock: ManualClock, run: Any) -> Desk:
    return Desk(store, clock, run)
