"""`ctx.complete(tx=…)`: a job's success in the user's own transaction, on the user's own connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from mainspring import Context, Retry
from mainspring.errors import ClaimLost
from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from mainspring.telemetry.events import SettlementRefused
from mainspring.testing.clock import ManualClock
from tests.engine.kit import Floor


class Counter:
    """A floor on a database that others may open too, and the users' table in it."""

    def __init__(self, url: str, store: Any, clock: ManualClock, run: Callable[[Any], Any]) -> None:
        self.url, self.run = url, run
        self.floor = Floor(store, clock)
        self._execute("CREATE TABLE effects (job_id bigint)")

    def effects(self) -> list[int]:
        return [row[0] for row in self._execute("SELECT job_id FROM effects")]

    def put(self, name: str, **fields: Any) -> int:
        return int(self.run(self.floor.put(name, **fields)))

    def work(self) -> None:
        self.run(self.floor.work())

    def ended(self, job_id: int) -> tuple[JobState, list[Verdict]]:
        runs = self.run(self.floor.runs(job_id))
        return self.run(self.floor.job(job_id)).state, [each.verdict for each in runs]

    @property
    def path(self) -> str:
        return self.url.removeprefix("sqlite:///")

    def _execute(self, query: str) -> list[Any]:
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.path)) as connection, connection:
                return connection.execute(query).fetchall()
        with psycopg.connect(self.url) as session:
            cursor = session.execute(query)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def counter(database_url: str, clock: ManualClock, run: Any) -> Iterator[Counter]:
    store = open_store(database_url, clock=clock)
    counter = Counter(database_url, store, clock, run)
    try:
        yield counter
    finally:
        counter.floor.close()
        run(store.close())


@pytest.fixture
def connect(counter: Counter) -> Callable[[], Any]:
    """A blocking connection of the driver's own, which commits when its block ends without an error."""

    def postgres() -> Any:
        return psycopg.connect(counter.url)

    def sqlite() -> Any:
        class Closing:
            def __enter__(self) -> Any:
                self._connection = sqlite3.connect(counter.path)
                return self._connection.__enter__()

            def __exit__(self, *error: Any) -> None:
                self._connection.__exit__(*error)
                self._connection.close()

        return Closing()

    return sqlite if counter.url.startswith("sqlite") else postgres


def test_a_plain_handlers_own_commit_settles_its_job(counter: Counter, connect: Any) -> None:
    @counter.floor.task
    def pay(ctx: Context) -> str:
        with connect() as connection:
            connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
            ctx.complete(tx=connection, result={"paid": 1})
        return "not kept"

    job_id = counter.put("pay")
    counter.work()

    assert counter.effects() == [job_id]
    assert counter.ended(job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert counter.run(counter.floor.job(job_id)).result == b'{"paid":1}'
    assert counter.floor.heard.of(SettlementRefused) == []


def test_a_transaction_that_is_never_committed_is_a_failure(counter: Counter, connect: Any) -> None:
    @counter.floor.task
    def pay(ctx: Context) -> None:
        with connect() as connection:
            connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
            ctx.complete(tx=connection)
            connection.rollback()

    job_id = counter.put("pay")
    counter.work()

    assert counter.effects() == []
    assert counter.ended(job_id) == (JobState.DEAD, [Verdict.DEAD])
    [error] = counter.run(counter.floor.job(job_id)).errors
    assert error.message == "ctx.complete(): completed in a transaction that was not committed"


def test_an_error_before_the_commit_is_the_failure(counter: Counter, connect: Any) -> None:
    @counter.floor.task(retry=Retry(attempts=2, base=0))
    def pay(ctx: Context) -> None:
        with connect() as connection:
            connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
            ctx.complete(tx=connection)
            if ctx.attempt == 1:
                raise ValueError("no funds")

    job_id = counter.put("pay", max_attempts=2)
    counter.work()
    counter.work()

    assert counter.effects() == [job_id]
    assert counter.ended(job_id) == (JobState.SUCCEEDED, [Verdict.FAILED, Verdict.SUCCEEDED])


def test_an_error_after_the_commit_takes_nothing_back(counter: Counter, connect: Any, caplog: Any) -> None:
    @counter.floor.task
    def pay(ctx: Context) -> None:
        with connect() as connection:
            connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
            ctx.complete(tx=connection)
        raise ValueError("too late")

    job_id = counter.put("pay")
    counter.work()

    assert counter.effects() == [job_id]
    assert counter.ended(job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert "too late" in caplog.text


def test_a_run_that_lost_its_claim_is_told_and_leaves_nothing(counter: Counter, connect: Any) -> None:
    told: list[str] = []

    @counter.floor.task
    def pay(ctx: Context) -> None:
        cancelled = counter.floor.store.jobs.cancel([ctx.job_id], at=counter.floor.clock.stamp())
        assert ctx.effects is not None
        ctx.effects.call(lambda: cancelled)  # type: ignore[attr-defined]
        try:
            with connect() as connection:
                connection.execute(f"INSERT INTO effects VALUES ({ctx.job_id})")
                ctx.complete(tx=connection)
        except ClaimLost as lost:
            told.append(str(lost))
            raise

    job_id = counter.put("pay")
    counter.work()

    assert counter.effects() == []
    assert len(told) == 1
    assert counter.ended(job_id) == (JobState.CANCELLED, [Verdict.CANCELLED])


def test_sqlalchemy_and_its_session(counter: Counter) -> None:
    engine = create_engine(counter.url.replace("postgresql://", "postgresql+psycopg://"))

    @counter.floor.task
    def pay(ctx: Context) -> None:
        with Session(engine) as session, session.begin():
            session.execute(text("INSERT INTO effects VALUES (:id)"), {"id": ctx.job_id})
            with ctx.once("charge", tx=session) as first:
                assert first
            ctx.complete(tx=session, result=[1])

    job_id = counter.put("pay")
    counter.work()
    engine.dispose()

    assert counter.effects() == [job_id]
    assert counter.ended(job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert counter.run(counter.floor.job(job_id)).result == b"[1]"
    assert counter.run(counter.floor.store.effects.step(job_id, "charge"))


def test_sqlalchemy_and_its_async_session(counter: Counter) -> None:
    url = counter.url.replace("postgresql://", "postgresql+asyncpg://")
    engine = create_async_engine(url.replace("sqlite:///", "sqlite+aiosqlite:///"))

    @counter.floor.task
    async def pay(ctx: Context) -> None:
        async with AsyncSession(engine) as session, session.begin():
            await session.execute(text("INSERT INTO effects VALUES (:id)"), {"id": ctx.job_id})
            async with ctx.once("charge", tx=session) as first:
                assert first
            await ctx.acomplete(tx=session, result=[1])

    job_id = counter.put("pay")
    counter.work()
    counter.run(engine.dispose())

    assert counter.effects() == [job_id]
    assert counter.ended(job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
    assert counter.run(counter.floor.job(job_id)).result == b"[1]"


@pytest.mark.parametrize("backend", ["postgres"])
@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
def test_the_awaited_drivers_of_postgresql(counter: Counter, driver: str) -> None:
    @counter.floor.task
    async def pay(ctx: Context) -> None:
        insert = f"INSERT INTO effects VALUES ({ctx.job_id})"
        if driver == "asyncpg":
            connection = await asyncpg.connect(counter.url)
            async with connection.transaction():
                await connection.execute(insert)
                await ctx.acomplete(tx=connection)
            await connection.close()
        else:
            async with await psycopg.AsyncConnection.connect(counter.url) as session:
                await session.execute(insert)
                await ctx.acomplete(tx=session)

    job_id = counter.put("pay")
    counter.work()

    assert counter.effects() == [job_id]
    assert counter.ended(job_id) == (JobState.SUCCEEDED, [Verdict.SUCCEEDED])
