"""The statement that puts one job in: prepared once it has come a few times, and right ever after."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from mainspring.clock import SystemClock
from mainspring.model.job import JobState, NewJob
from mainspring.store.opener import open_store
from mainspring.store.postgres.sessions import SETTLED
from mainspring.store.postgres.store import PostgresStore

MANY = 2 * SETTLED
JOB = NewJob(task="pay", payload=b"{}")


async def put(store: PostgresStore, times: int) -> list[int]:
    return [job_id for _ in range(times) for job_id in await store.queue.insert([JOB], at=None)]


@pytest.mark.parametrize(
    "happens",
    [
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
        " AND datname = current_database()",
        "ALTER TABLE mainspring.jobs ADD COLUMN later integer DEFAULT 7",
        "ANALYZE mainspring.jobs",
    ],
    ids=["sessions end", "a migration", "new statistics"],
)
def test_a_job_is_stored_once_whatever_happens_to_its_statement(
    postgres_url: str, run: Any, happens: str
) -> None:
    async def story() -> None:
        store = open_store(postgres_url, clock=SystemClock())
        assert isinstance(store, PostgresStore)
        ids = await put(store, MANY)
        other = await asyncpg.connect(postgres_url)
        await other.execute(happens)
        ids += await put(store, MANY)
        stored = [row["id"] for row in await other.fetch("SELECT id FROM mainspring.jobs ORDER BY id")]
        assert stored == ids
        await other.close()
        await store.close()

    run(story())


def test_a_job_with_more_to_say_is_stored_with_it_between_those_without(postgres_url: str, run: Any) -> None:
    async def story() -> None:
        store = open_store(postgres_url, clock=SystemClock())
        assert isinstance(store, PostgresStore)
        now = await store.now(at=None)
        for more, state in [
            ({}, JobState.READY),
            ({"delay": timedelta(hours=1)}, JobState.DELAYED),
            ({"run_at": now + timedelta(hours=2)}, JobState.DELAYED),
            ({"expires": timedelta(hours=3)}, JobState.READY),
            ({"trace": "00-ab-cd-01"}, JobState.READY),
        ]:
            await put(store, MANY)
            [job_id] = await store.queue.insert([NewJob(task="pay", payload=b"{}", **more)], at=None)
            job = await store.jobs.get(job_id, at=None)
            assert job is not None
            assert (job.state, job.trace) == (state, more.get("trace"))
            assert job.run_at == more.get("run_at", job.enqueued_at + more.get("delay", timedelta()))
            assert (job.expires_at is None) == ("expires" not in more)
        await store.close()

    run(story())
