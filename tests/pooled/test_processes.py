"""Processes that share fewer sessions than they are, and what becomes of an answer that the pooler lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from mainspring.clock import SystemClock
from mainspring.errors import InvalidConfig
from mainspring.model.job import NewJob
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from mainspring.store.postgres.pooled import steered
from mainspring.waiting import pause
from tests.e2e.target import SCHEDULES, work
from tests.support.pgbouncer import MISSING, PgBouncer, found
from tests.support.processes import Site, until

TARGET = Path(__file__).parents[1] / "e2e" / "target.py"
DEAF = "no hints, so new jobs wait for the next look"
JOBS = 200


@contextmanager
def _site(url: str, folder: Path, run: Callable[[Any], Any]) -> Iterator[Site]:
    store = open_store(url, clock=SystemClock())
    site = Site(url, store, folder=folder, target=TARGET, run=run)
    try:
        yield site
    finally:
        site.end()
        run(store.close())


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():
            await pause(timedelta(milliseconds=10))


@pytest.mark.e2e
def test_more_processes_than_sessions_do_every_job_once(
    database_url: str, tmp_path: Path, run: Callable[[Any], Any]
) -> None:
    with _site(database_url, tmp_path, run) as site:
        workers = [site.worker(f"worker-{n}", "-c", "20") for n in range(3)]
        site.scheduler("scheduler")
        ids = site.put([work.job(0.0)] * JOBS)
        until(lambda: site.effects.jobs("end") >= set(ids), "all jobs to end")
        until(
            lambda: {each.schedule for each in site.effects.all()} >= set(SCHEDULES), "every schedule to fire"
        )
        until(lambda: all(site.verdicts(each) == [Verdict.SUCCEEDED] for each in ids[::20]), "settlements")

        assert len(site.effects.of("start", jobs=ids)) == JOBS
        assert all(worker.says(DEAF) for worker in workers)


@pytest.mark.e2e
def test_a_way_around_the_pool_brings_hints(
    pooler: PgBouncer, postgres_url: str, tmp_path: Path, run: Callable[[Any], Any]
) -> None:
    with _site(pooler.url(postgres_url, listen=True), tmp_path, run) as site:
        # Without a hint, nobody would look within the time that the test has.
        (tmp_path / "mainspring.toml").write_text('[worker]\npoll = "10m"\n')
        worker = site.worker("worker")
        ids = site.put([work.job(0.0)])
        site.ask(site.store._notifier.close())  # the hint is sent on the side
        until(lambda: site.effects.jobs("end") >= set(ids), "the job to end")

        assert not worker.says(DEAF)


def test_an_insert_whose_answer_the_pooler_lost_happens_once(
    postgres_url: str, run: Callable[[Any], Any]
) -> None:
    if found() is None:
        pytest.skip(MISSING)
    own = PgBouncer(postgres_url)
    store = open_store(own.url(postgres_url), clock=SystemClock())
    job = NewJob(task="t", payload=b"{}")

    async def story() -> None:
        direct = await asyncpg.connect(postgres_url)
        watch = await asyncpg.connect(postgres_url)  # inside a transaction, activity stands still
        await store.queue.insert([job], at=None)  # names and ids are known now
        async with direct.transaction():
            await direct.execute("LOCK TABLE mainspring.jobs IN SHARE MODE")
            insert = asyncio.create_task(store.queue.insert([job], at=None))
            stuck_at = (
                "FROM pg_stat_activity WHERE datname = current_database() "
                "AND wait_event_type = 'Lock' AND query LIKE '/* mainspring %INSERT INTO mainspring.jobs%'"
            )
            await _until(lambda: watch.fetchval(f"SELECT count(*) = 1 {stuck_at}"))
            before = await watch.fetchval(f"SELECT pid {stuck_at}")
            own.restart()
            # Its session still waits for the lock. It must have ended before anybody asks what it did.
            await _until(
                lambda: watch.fetchval(f"SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = {before}")
            )
        [job_id] = await insert
        found_ids = [row["id"] for row in await direct.fetch("SELECT id FROM mainspring.jobs ORDER BY id")]
        await direct.close()
        await watch.close()

        assert len(found_ids) == 2
        assert found_ids[-1] == job_id

    try:
        run(story())
    finally:
        run(store.close())
        own.stop()


@pytest.mark.parametrize("ignored", [False, True], ids=["refused", "ignored"])
def test_a_pooler_that_nobody_told_us_of_is_named_in_the_error(
    ignored: bool, postgres_url: str, run: Callable[[Any], Any]
) -> None:
    if found() is None:
        pytest.skip(MISSING)
    names = "jit,enable_seqscan,enable_bitmapscan,plan_cache_mode,statement_timeout,lock_timeout"
    names += ",idle_in_transaction_session_timeout,synchronous_commit"
    own = PgBouncer(postgres_url, settings={"ignore_startup_parameters": names} if ignored else None)
    store = open_store(own.plain_url(postgres_url), clock=SystemClock())
    try:
        with pytest.raises(InvalidConfig, match=r"database\.url: expected .*pool=transaction"):
            run(store.now(at=None))
    finally:
        run(store.close())
        own.stop()


def test_claims_are_relaxed_and_settlements_durable_and_nothing_is_left_on_a_session(
    store: Any, postgres_url: str, run: Callable[[Any], Any]
) -> None:
    async def story() -> None:
        database = store._database
        commit = "SELECT current_setting('synchronous_commit') || ' ' || current_setting('enable_seqscan')"
        async with (
            database._connection(relaxed=True) as connection,
            database._begun(connection, relaxed=True),
        ):
            assert await connection.fetchval(commit) == "off off"
        async with database.transaction("look") as transaction:
            assert await transaction._connection.fetchval(commit) == "on off"
        async with database._connection(relaxed=True) as connection:
            assert await connection.fetchval(commit) == "on on"
            prepared = await connection.fetchval(
                "SELECT count(*) FROM pg_prepared_statements WHERE name <> ''"
            )
        assert prepared == 0

    run(story())


def test_a_known_statement_takes_one_message_each_way(store: Any, run: Callable[[Any], Any]) -> None:
    async def story() -> None:
        database = store._database
        async with database._connection(relaxed=False) as connection:
            sql = f"{connection.mark.text}SELECT $1::bigint[] AS ids"
            await connection.fetch(sql, [1])
            state = connection._described[sql, ("ignore_custom_codec", False), ("record_class", None)]
            [row] = await connection.fetch(sql, [2, 3])
            assert row["ids"] == [2, 3]
            assert connection._described[sql, ("ignore_custom_codec", False), ("record_class", None)] is state

    run(story())


def test_a_transaction_that_is_cut_short_leaves_nothing_on_the_connection(
    store: Any, run: Callable[[Any], Any]
) -> None:
    async def story() -> None:
        database = store._database
        async with database._connection(relaxed=False) as connection:
            mark = database.session_of(connection)
            with pytest.raises(asyncpg.PostgresError):
                async with steered(connection, mark, {"no_such_setting": "on"}):
                    pass
            assert not connection.is_in_transaction()
            with pytest.raises(ZeroDivisionError):
                async with steered(connection, mark, {"jit": "off"}):
                    raise ZeroDivisionError
            assert not connection.is_in_transaction()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), steered(connection, mark, {"jit": "off"}):
                    await connection.fetch("SELECT pg_sleep(60)")
            assert not connection.is_in_transaction()
            assert await connection.fetchval("SELECT 1") == 1

    run(story())
