"""Days of history that are made while rows of those days come in: PostgreSQL only."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from mainspring.clock import SystemClock
from mainspring.errors import StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from tests.support.desk import settlement

AHEAD = timedelta(days=400)
_WAITS = """
SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass('mainspring.runs_default')
"""
_INSERT = """
INSERT INTO mainspring.runs (job_id, finished_at, enqueued_at, run_at, worker_id, queue_id, task_id, fence,
                             priority, max_attempts, failures, crashes, verdict)
VALUES (7, $1, $1, $1, 1, 1, 1, 1, 0, 1, 0, 0, 0)
"""


@pytest.fixture
def database(databases, request):
    owner = getattr(request.config, "workerinput", {}).get("workerid", "main")
    name = databases.create(owner=f"{owner}_partitions")
    yield databases.url(name)
    databases.drop(name)


async def claimed(store, at):
    await store.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=timedelta(hours=1), at=at)
    await store.queue.insert([NewJob(task="t", payload=b"{}")], at=at)
    [claim] = await store.queue.claim(1, queues=["default"], tasks=["t"], limit=1, at=at)
    return claim


async def settled(store, ended, at):
    """As a settler does: what was not taken is written again."""
    try:
        return await store.queue.settle([ended], at=at)
    except StoreUnavailable:
        return await store.queue.settle([ended], at=at)


async def somebody_waits(database):
    """Until a session waits for the default partition."""
    connection = await asyncpg.connect(database)
    try:
        async with asyncio.timeout(40):
            while True:
                if await connection.fetchval(_WAITS):
                    return
                await asyncio.sleep(0.01)
    finally:
        await connection.close()


@pytest.mark.parametrize("log", [None, "hello"], ids=["in one statement", "in a transaction"])
def test_a_run_that_ends_while_its_day_is_made_is_written(database, run, log):
    async def scene():
        store, other = open_store(database, clock=SystemClock()), await asyncpg.connect(database)
        at = await store.now(at=None) + AHEAD
        claim = await claimed(store, at)
        try:
            making = other.transaction()
            await making.start()
            await other.execute("SELECT mainspring.add_partitions('runs', 'finished_at', $1, 1)", at.date())
            settling = asyncio.create_task(settled(store, settlement(claim, Verdict.SUCCEEDED, log=log), at))
            await somebody_waits(database)
            await making.commit()

            assert await settling == []
            assert [each.verdict for each in await store.runs.of(claim.job_id)] == [Verdict.SUCCEEDED]
            day = at.strftime("%Y%m%d")
            assert await other.fetchval(f"SELECT count(*) FROM mainspring.runs_{day}") == 1
        finally:
            await other.close()
            await store.close()

    run(scene())


def test_a_day_is_made_while_a_row_of_it_is_being_written(database, run):
    async def scene():
        store, other = open_store(database, clock=SystemClock()), await asyncpg.connect(database)
        at = await store.now(at=None) + AHEAD
        try:
            writing = other.transaction()
            await writing.start()
            await other.execute(_INSERT, at)
            making = asyncio.create_task(store.prune(keep=timedelta(days=1000), at=at))
            await somebody_waits(database)
            await writing.commit()
            await making

            day = at.strftime("%Y%m%d")
            assert await other.fetchval(f"SELECT count(*) FROM mainspring.runs_{day}") == 1
        finally:
            await other.close()
            await store.close()

    run(scene())
