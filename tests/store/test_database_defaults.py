"""A role or a database may have defaults of its own. Ours are told, and what callers do stays theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from mainspring.model.job import NewJob
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.store.test_claim_contract import *  # noqa: F403 - its tests and the fixtures they use
from tests.support.pgbouncer import MISSING, PgBouncer, found

TTL = timedelta(seconds=15)
DEFAULTS = {
    "default_transaction_isolation": "'serializable'",
    "default_transaction_deferrable": "on",
    "search_path": "nowhere",
    "timezone": "'Asia/Kathmandu'",
    "datestyle": "'SQL, DMY'",
    "intervalstyle": "sql_standard",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "statement_timeout": "'20s'",
    "lock_timeout": "'1ms'",
    "jit": "on",
    "row_security": "off",
}


@pytest.fixture(params=["direct", "pooled"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def backend() -> str:
    return "postgres"


@pytest.fixture
def theirs(new_database: Callable[..., str], run: Any) -> str:
    """A database whose role has all of these in it."""
    url = new_database(migrated=False)

    async def change() -> None:
        connection = await asyncpg.connect(url)
        name = urlsplit(url).path.strip("/")
        for setting, value in DEFAULTS.items():
            await connection.execute(f'ALTER ROLE CURRENT_USER IN DATABASE "{name}" SET {setting} = {value}')
        await connection.close()

    run(change())
    return url


@pytest.fixture
def database_url(theirs: str, way: str) -> Iterator[str]:
    if way == "direct":
        yield theirs
        return
    if found() is None:
        pytest.skip(MISSING)
    pooler = PgBouncer(theirs, servers=4)
    yield pooler.url(theirs)
    pooler.stop()


@pytest.fixture
def store(database_url: str, run: Any, clock: ManualClock) -> Iterator[Any]:
    opened = open_store(database_url, clock=clock, hints=False)
    try:
        run(opened.migrate())
        yield opened
    finally:
        run(opened.close())


def test_our_transactions_are_read_committed(store: Any, run: Any) -> None:
    async def ask() -> set[str]:
        database, said = store._database, set()
        for relaxed in (False, True):
            async with (
                database._connection(relaxed=relaxed) as connection,
                database._begun(connection, relaxed=relaxed),
            ):
                said.add(await connection.fetchval("SHOW transaction_isolation"))
        return said

    assert run(ask()) == {"read committed"}


def test_what_waits_for_another_does_not_fail(store: Any, run: Any) -> None:
    """Forty writers of the same counters and keys: not one is told to try again."""

    async def put(number: int) -> None:
        await store.queue.insert(
            [NewJob(task=f"task-{number % 3}", payload=b"{}", queue=f"q-{number % 2}")], at=None
        )
        await store.leases.acquire("one", holder_id=number + 1, holder="x", ttl=TTL, at=None)

    async def at_once() -> list[object]:
        return list(await asyncio.gather(*(put(number) for number in range(40)), return_exceptions=True))

    assert [each for each in run(at_once()) if each is not None] == []


def test_a_handlers_transaction_has_the_defaults_of_its_role(store: Any, run: Any) -> None:
    async def ask() -> str:
        loan = await store.effects.lend()
        level = str(await loan.connection.fetchval("SHOW transaction_isolation"))
        await loan.rollback()
        return level

    assert run(ask()) == "serializable"
