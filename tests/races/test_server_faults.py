"""A PostgreSQL server that restarts, freezes and comes back, under load."""

from __future__ import annotations

import asyncio
import contextlib
import time
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from mainspring.app import Mainspring
from mainspring.clock import SystemClock
from mainspring.errors import AnswerLost, StoreError
from mainspring.model.job import JobFilter, JobState, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.process.process import Process
from mainspring.process.serve import aserve
from mainspring.store.opener import open_store
from mainspring.store.postgres.connection import Session
from mainspring.telemetry.events import LeaseEnded, RunStarted, Telemetry
from tests.engine.kit import Heard, until
from tests.support.postgres import PostgresServer


def test_an_enqueue_while_the_server_restarts_is_stored_once_or_raises(
    server: PostgresServer, run: Any
) -> None:
    async def story() -> None:
        store = open_store(server.url(), clock=SystemClock())
        await store.migrate()
        stored: dict[str, int] = {}
        unknown: set[str] = set()
        stopping = False

        async def hammer(who: int) -> None:
            n = 0
            while not stopping:
                n += 1
                mark = f"{who}-{n}"
                try:
                    [job_id] = await store.queue.insert(
                        [NewJob(task="t", payload=b'{"args":["%s"]}' % mark.encode())], at=None
                    )
                    stored[mark] = job_id
                except AnswerLost:
                    unknown.add(mark)
                except StoreError:
                    await asyncio.sleep(0.005)

        hammers = [asyncio.create_task(hammer(n)) for n in range(4)]
        for _ in range(3):
            before = len(stored)
            await until(lambda before=before: len(stored) > before + 50)
            await asyncio.to_thread(server.restart, "immediate")
        before = len(stored)
        await until(lambda: len(stored) > before + 20)
        stopping = True
        await asyncio.gather(*hammers)

        jobs = await store.jobs.find(JobFilter(limit=1_000_000), at=None)
        marks = [job.payload.decode().split('"')[3] for job in jobs]
        assert len(marks) == len(set(marks)), "an enqueue was doubled"
        assert set(stored) <= set(marks), "an enqueue that returned was lost"
        assert set(marks) <= set(stored) | unknown, "an enqueue that raised was stored"
        assert {job.payload.decode().split('"')[3]: job.id for job in jobs}.items() >= stored.items()
        await store.close()

    run(story())


def test_a_worker_goes_through_restarts_without_losing_or_repeating_a_settled_job(
    server: PostgresServer, run: Any
) -> None:
    heard = Heard()
    app = Mainspring._with(server.url(), telemetry=Telemetry(heard))
    app._configure({"worker.poll": "50ms"})
    ran: list[int] = []

    @app.task
    async def note(n: int) -> None:
        ran.append(n)
        await asyncio.sleep(0.01)

    async def story() -> None:
        store = await app._store(prepare=False)
        await store.migrate()
        processes: list[Process] = []
        serving = asyncio.create_task(aserve(app, scheduler=False, on_start=processes.append))
        handles = await app.aenqueue_many(note.job(n) for n in range(1500))
        for _ in range(2):
            before = len(ran)
            await until(lambda before=before: len(ran) > before + 100)
            await asyncio.to_thread(server.restart, "immediate")

        async def left() -> int:
            with contextlib.suppress(StoreError):
                return len(await store.jobs.find(JobFilter(limit=5), at=None))
            return 1

        deadline = time.monotonic() + 60
        while await left():
            assert time.monotonic() < deadline, "jobs are stuck"
            await asyncio.sleep(0.05)
        processes[0].stop()
        async with asyncio.timeout(30):
            await serving

        assert set(ran) == set(range(1500))
        for handle in handles[::50]:
            job = await store.jobs.get(handle.id, at=None)
            assert job is not None and job.state is JobState.SUCCEEDED
        await app.aclose()

    run(story())


def test_a_cancelled_call_to_a_frozen_server_returns_soon(server: PostgresServer, run: Any) -> None:
    async def story() -> None:
        store = open_store(server.url(), clock=SystemClock())
        await store.migrate()
        await store.processes.join(
            NewProcess(id=5, role=Role.WORKER, name="x"), lease=timedelta(minutes=1), at=None
        )
        await store.processes.beat(5, lease=timedelta(minutes=1), claims=[], at=None)
        server.pause()
        try:
            began = time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.5):
                    await store.processes.beat(5, lease=timedelta(minutes=1), claims=[], at=None)
            assert time.monotonic() - began < 5
        finally:
            server.resume()
        assert (await store.processes.beat(5, lease=timedelta(minutes=1), claims=[], at=None)).alive
        await store.close()

    run(story())


def test_a_worker_of_a_frozen_server_stops_its_handlers_before_its_lease_ends(
    server: PostgresServer, run: Any
) -> None:
    heard = Heard()
    app = Mainspring._with(server.url(), telemetry=Telemetry(heard))
    lease = 3.0
    app._configure({"worker.poll": "50ms", "worker.lease": f"{lease}s", "worker.heartbeat": "500ms"})
    ended: list[float] = []

    @app.task
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(time.monotonic())

    async def story() -> None:
        store = await app._store(prepare=False)
        await store.migrate()
        processes: list[Process] = []
        serving = asyncio.create_task(aserve(app, scheduler=False, on_start=processes.append))
        handle = await endless.aenqueue()
        await until(lambda: heard.of(RunStarted))
        await asyncio.sleep(0.6)
        server.pause()
        began = time.monotonic()
        try:
            await until(lambda: ended, 10)
        finally:
            server.resume()
        assert ended[0] - began < lease, "the handler outlived the lease"
        assert not heard.of(LeaseEnded)[0].expired

        await until(lambda: len(heard.of(RunStarted)) == 2, 30)  # and it goes on afterwards
        processes[0].stop()
        processes[0].stop()
        async with asyncio.timeout(30):
            await serving
        job = await store.jobs.get(handle.id, at=None)
        assert job is not None and job.failures == 0
        await app.aclose()

    run(story())


@pytest.mark.parametrize("count", [1, 1500])  # by INSERT, and by COPY
@pytest.mark.parametrize("arrived", [True, False])
def test_an_enqueue_whose_answer_is_lost_is_looked_up_and_stored_once(
    postgres_url: str, run: Any, monkeypatch: pytest.MonkeyPatch, arrived: bool, count: int
) -> None:
    async def story() -> None:
        store: Any = open_store(postgres_url, clock=SystemClock())
        real = store.queue._insert
        lost: list[None] = []

        async def insert(*args: Any) -> None:
            if lost:
                await real(*args)
                return
            lost.append(None)
            if arrived:
                await real(*args)
            raise AnswerLost("insert_jobs")

        monkeypatch.setattr(store.queue, "_insert", insert)
        ids = await store.queue.insert([NewJob(task="t", payload=b"{}")] * count, at=None)
        jobs = await store.jobs.find(JobFilter(limit=10_000), at=None)
        await store.close()

        assert sorted(job.id for job in jobs) == sorted(ids)
        assert len(ids) == count

    run(story())


def test_an_enqueue_is_not_judged_while_the_session_that_was_at_it_may_still_commit(
    postgres_url: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client lost contact, the server did not: the session is ended before anybody looks."""

    async def story() -> None:
        store: Any = open_store(postgres_url, clock=SystemClock())
        cut_off = await asyncpg.connect(postgres_url)
        row = await cut_off.fetchrow(
            "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        )
        real, lost = store.queue._insert, []

        async def insert(batch: Any, *args: Any) -> None:
            if lost:
                await real(batch, *args)
                return
            lost.append(None)
            await cut_off.execute("BEGIN")
            await cut_off.execute(
                "INSERT INTO mainspring.jobs"
                " (id, queue_id, task_id, priority, run_at, enqueued_at, max_attempts, payload)"
                " VALUES ($1, 1, 1, 0, now(), now(), 1, '')",
                batch.ids[0],
            )
            raise AnswerLost("insert_jobs", session=Session(pid=row["pid"], started=row["backend_start"]))

        monkeypatch.setattr(store.queue, "_insert", insert)
        async with asyncio.timeout(20):
            [job_id] = await store.queue.insert([NewJob(task="t", payload=b"{}")], at=None)
        [job] = await store.jobs.find(JobFilter(), at=None)
        await store.close()
        cut_off.terminate()

        assert (job.id, job.payload) == (job_id, b"{}")

    run(story())
