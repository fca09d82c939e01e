"""On PostgreSQL a claim is a HOT update: it touches no index, whatever it changes."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.store.opener import open_store
from tests.support.desk import HOUR

JOBS = 1000
COUNTED_WITHIN = 20.0
UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'mainspring.jobs'::regclass"


@pytest.fixture
def store(postgres_url, clock, run):
    opened = open_store(postgres_url, clock=clock)
    yield opened
    run(opened.close())


async def claim_everything(store, clock):
    at = clock.stamp()
    await store.queue.insert([NewJob(task="t", payload=b"x" * 100)] * JOBS, at=at)
    await store.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=HOUR, at=at)
    taken = 0
    while claims := await store.queue.claim(1, queues=["default"], tasks=["t"], limit=100, at=at):
        taken += len(claims)
    return taken


async def updates(url):
    """Counted by the sessions that did them, and told when those go idle or end; so look until they are."""
    connection = await asyncpg.connect(url)
    try:
        async with asyncio.timeout(COUNTED_WITHIN):
            while True:
                row = await connection.fetchrow(UPDATES)
                if row["n_tup_upd"] >= JOBS:
                    return tuple(row)
                await asyncio.sleep(0.02)
    finally:
        await connection.close()


def test_every_claim_is_a_hot_update(store, clock, run, postgres_url):
    assert run(claim_everything(store, clock)) == JOBS
    run(store.close())  # a session tells its counts when it ends

    assert run(updates(postgres_url)) == (JOBS, JOBS)
