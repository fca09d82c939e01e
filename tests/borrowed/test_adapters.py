"""Every kind of connection: a committed transaction has its jobs, one that was rolled back has none."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from mainspring.model.job import Claim, JobState
from mainspring.model.process import NewProcess, Role
from mainspring.store.sqlite.connection import WAL_RESET_FIXED
from tests.borrowed.conftest import Shop
from tests.support.django import configured

RUN_AT = datetime(2030, 6, 1, 12, tzinfo=UTC)


class RolledBack(Exception):
    """Ends a transaction as an error would."""


# Each way opens a connection and a transaction in the manner of its library, and gives what goes into tx=.


@contextmanager
def by_psycopg(shop: Shop) -> Iterator[Any]:
    with psycopg.connect(shop.url) as connection:
        yield connection


@contextmanager
def by_psycopg_autocommit(shop: Shop) -> Iterator[Any]:
    with psycopg.connect(shop.url, autocommit=True) as connection, connection.transaction():
        yield connection


@contextmanager
def by_psycopg_dict_rows(shop: Shop) -> Iterator[Any]:
    with psycopg.connect(shop.url, row_factory=psycopg.rows.dict_row) as connection:
        yield connection


@contextmanager
def by_sqlalchemy_connection(shop: Shop) -> Iterator[Any]:
    engine = create_engine(alchemy(shop))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def by_sqlalchemy_session(shop: Shop) -> Iterator[Any]:
    engine = create_engine(alchemy(shop))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@contextmanager
def by_sqlalchemy_scoped_session(shop: Shop) -> Iterator[Any]:
    engine = create_engine(alchemy(shop))
    session = scoped_session(sessionmaker(engine))
    try:
        with session.begin():
            yield session
    finally:
        session.remove()
        engine.dispose()


@contextmanager
def by_django_alias(shop: Shop) -> Iterator[Any]:
    with configured(shop.url) as alias, transaction.atomic(using=alias):
        yield alias


@contextmanager
def by_django_connection(shop: Shop) -> Iterator[Any]:
    with configured(shop.url) as alias, transaction.atomic(using=alias):
        connection = connections[alias]
        assert isinstance(connection, BaseDatabaseWrapper)
        yield connection


@contextmanager
def by_sqlite3(shop: Shop) -> Iterator[Any]:
    with closing(sqlite3.connect(shop.path)) as connection, connection:
        yield connection


@contextmanager
def by_sqlite3_immediate(shop: Shop) -> Iterator[Any]:
    with closing(sqlite3.connect(shop.path, isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            yield connection


@asynccontextmanager
async def by_asyncpg(shop: Shop) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(shop.url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(shop: Shop) -> AsyncIterator[Any]:
    async with (
        asyncpg.create_pool(shop.url, min_size=1, max_size=1) as pool,
        pool.acquire() as connection,
        connection.transaction(),
    ):
        yield connection


@asynccontextmanager
async def by_psycopg_async(shop: Shop) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(shop.url) as connection:
        yield connection


@asynccontextmanager
async def by_async_sqlalchemy_connection(shop: Shop) -> AsyncIterator[Any]:
    engine = create_async_engine(async_alchemy(shop))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_async_sqlalchemy_session(shop: Shop) -> AsyncIterator[Any]:
    engine = create_async_engine(async_alchemy(shop))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


def alchemy(shop: Shop) -> str:
    return shop.url.replace("postgresql://", "postgresql+psycopg://").replace("sqlite:///", "sqlite:///")


def async_alchemy(shop: Shop) -> str:
    return shop.url.replace("postgresql://", "postgresql+asyncpg://").replace(
        "sqlite:///", "sqlite+aiosqlite:///"
    )


ON_BOTH = [
    by_sqlalchemy_connection,
    by_sqlalchemy_session,
    by_sqlalchemy_scoped_session,
    by_django_alias,
    by_django_connection,
]
BLOCKING = {
    "postgres": [by_psycopg, by_psycopg_autocommit, by_psycopg_dict_rows, *ON_BOTH],
    "sqlite": [by_sqlite3, by_sqlite3_immediate, *ON_BOTH],
}
AWAITING = {
    "postgres": [
        by_asyncpg,
        by_asyncpg_pool,
        by_psycopg_async,
        by_async_sqlalchemy_connection,
        by_async_sqlalchemy_session,
    ],
    "sqlite": [by_async_sqlalchemy_connection, by_async_sqlalchemy_session],
}


def ways(kinds: dict[str, list[Any]]) -> list[Any]:
    return [
        pytest.param(backend, way, id=f"{backend}-{way.__name__.removeprefix('by_')}")
        for backend, listed in kinds.items()
        for way in listed
    ]


@pytest.fixture
def the_shop(request: pytest.FixtureRequest) -> Callable[[str], Shop]:
    return lambda backend: request.getfixturevalue(f"{backend}_shop")


@pytest.mark.parametrize(("backend", "way"), ways(BLOCKING))
def test_a_job_is_there_when_the_transaction_commits(the_shop: Any, backend: str, way: Any) -> None:
    shop = the_shop(backend)

    with way(shop) as tx:
        handle = shop.bill.using(tx=tx).enqueue("ada", amount=1.5)
        assert shop.jobs() == []
    [job] = shop.jobs()

    assert (handle.id, handle.task, handle.queue) == (job.id, "bill.send", "mail")
    assert (job.task, job.queue, job.priority, job.state) == ("bill.send", "mail", 7, JobState.READY)
    assert (job.payload, job.max_attempts) == (b'{"args":["ada"],"kwargs":{"amount":1.5}}', 42)
    assert job.run_at == job.enqueued_at == shop.clock.now()


@pytest.mark.parametrize(("backend", "way"), ways(BLOCKING))
def test_a_transaction_that_is_rolled_back_leaves_no_job(the_shop: Any, backend: str, way: Any) -> None:
    shop = the_shop(backend)

    with pytest.raises(RolledBack), way(shop) as tx:
        shop.bill.using(tx=tx).enqueue("ada")
        raise RolledBack

    assert shop.jobs() == []


@pytest.mark.parametrize(("backend", "way"), ways(AWAITING))
def test_the_same_on_a_connection_that_is_awaited(the_shop: Any, backend: str, way: Any, run: Any) -> None:
    shop = the_shop(backend)

    async def commit() -> Any:
        async with way(shop) as tx:
            return await shop.bill.using(tx=tx).aenqueue("ada", amount=1.5)

    async def roll_back() -> None:
        async with way(shop) as tx:
            await shop.bill.using(tx=tx).aenqueue("bob")
            raise RolledBack

    handle = run(commit())
    with pytest.raises(RolledBack):
        run(roll_back())
    [job] = shop.jobs()

    assert handle.id == job.id
    assert (job.task, job.queue, job.priority, job.state) == ("bill.send", "mail", 7, JobState.READY)
    assert (job.payload, job.max_attempts) == (b'{"args":["ada"],"kwargs":{"amount":1.5}}', 42)
    assert job.run_at == job.enqueued_at == shop.clock.now()


@pytest.mark.parametrize(("backend", "way"), ways(BLOCKING))
def test_many_jobs_go_in_together_and_in_order(the_shop: Any, backend: str, way: Any) -> None:
    shop = the_shop(backend)
    late = shop.bill.using(delay="10m", queue="bulk", priority=-5, attempts=9)
    fixed = shop.bill.using(run_at=RUN_AT)

    with way(shop) as tx:
        empty = shop.app.enqueue_many([], tx=tx)
        handles = shop.app.enqueue_many([late.job("a"), fixed.job("b"), shop.bill.job("c")], tx=tx)
    first, second, third = shop.jobs()

    assert empty == []
    assert [handle.id for handle in handles] == [first.id, second.id, third.id]
    assert (first.queue, first.priority, first.max_attempts) == ("bulk", -5, 9)
    assert first.run_at == shop.clock.now() + timedelta(minutes=10)
    assert second.run_at == RUN_AT
    assert third.payload == b'{"args":["c"]}'


@pytest.mark.parametrize(("backend", "way"), ways(AWAITING))
def test_many_jobs_on_a_connection_that_is_awaited(the_shop: Any, backend: str, way: Any, run: Any) -> None:
    shop = the_shop(backend)

    async def put() -> list[int]:
        async with way(shop) as tx:
            handles = await shop.app.aenqueue_many([shop.bill.job(str(n)) for n in range(20)], tx=tx)
            return [handle.id for handle in handles]

    ids = run(put())

    assert [job.id for job in shop.jobs()] == ids
    assert len(set(ids)) == 20


def test_the_library_of_a_connection_keeps_its_own_rows(sqlite_shop: Shop) -> None:
    with by_sqlite3_immediate(sqlite_shop) as tx:
        sqlite_shop.bill.using(tx=tx).enqueue("ada")
        row = tx.execute("SELECT 1 AS one").fetchone()

    assert row["one"] == 1


@pytest.mark.skipif(sqlite3.sqlite_version_info >= WAL_RESET_FIXED, reason="this SQLite checkpoints safely")
def test_a_connection_to_sqlite_that_was_lent_no_longer_checkpoints_by_itself(sqlite_shop: Shop) -> None:
    with by_sqlite3(sqlite_shop) as tx:
        sqlite_shop.bill.using(tx=tx).enqueue("ada")
        [pages] = tx.execute("PRAGMA wal_autocheckpoint").fetchone()

    assert pages == 0


@pytest.mark.parametrize(("backend", "way"), [("postgres", by_psycopg), ("sqlite", by_sqlite3)])
def test_a_job_that_comes_to_a_paused_queue_waits_there(
    the_shop: Any, backend: str, way: Any, run: Any
) -> None:
    shop = the_shop(backend)
    at = shop.clock.stamp()
    run(shop.store.queues.pause("mail", author="ann", note=None, at=at))
    with way(shop) as tx:
        shop.bill.using(tx=tx).enqueue("ada")

    async def claimed() -> list[Claim]:
        return list(
            await shop.store.queue.claim(
                1, queues=["mail"], tasks=["bill.send"], limit=9, at=shop.clock.stamp()
            )
        )

    run(
        shop.store.processes.join(
            NewProcess(id=1, role=Role.WORKER, name="w"), lease=timedelta(minutes=1), at=at
        )
    )
    assert run(claimed()) == []
    assert run(shop.store.queues.resume("mail"))
    assert [claim.task for claim in run(claimed())] == ["bill.send"]
