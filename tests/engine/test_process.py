"""Whole processes: started, stopped, aborted, and the app's two doors."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.app import Mainspring
from mainspring.errors import UsageError
from mainspring.model.job import JobFilter, JobState, NewJob
from mainspring.model.process import Role
from mainspring.model.run import Verdict
from mainspring.process.process import Process
from mainspring.process.serve import aserve
from mainspring.store.postgres import hints
from mainspring.sync import Portal
from mainspring.tasks.context import Context
from mainspring.tasks.enqueue import JobHandle
from mainspring.telemetry.events import ProcessStopped, RunStarted, Telemetry
from tests.engine.kit import Heard, until, until_async


class Shop:
    """An app on the test's database and the machine's clock."""

    def __init__(self, url: str, **flags: object) -> None:
        self.heard = Heard()
        self.app = Mainspring._with(url, telemetry=Telemetry(self.heard))
        self.app._configure({"worker.poll": "50ms", "scheduler.poll": "50ms", **flags})
        self.processes: list[Process] = []

    def start(self, **options: Any) -> asyncio.Task[Process]:
        return asyncio.create_task(aserve(self.app, on_start=self.processes.append, **options))

    async def job(self, job_id: int) -> Any:
        return await (await self.app._store()).jobs.get(job_id, at=None)


@pytest.fixture
def shop(database_url: str, run: Any) -> Iterator[Shop]:
    opened = Shop(database_url)
    yield opened
    run(opened.app.aclose())
    opened.app.close()


def test_a_burst_ends_when_nothing_is_left(shop: Shop, run: Any) -> None:
    @shop.app.task
    async def quick(n: int) -> int:
        return n

    async def story() -> None:
        handles = await shop.app.aenqueue_many(quick.job(n) for n in range(100))
        async with asyncio.timeout(30):
            await aserve(shop.app, burst=True, scheduler=False)

        assert [(await shop.job(handle.id)).state for handle in handles] == [JobState.SUCCEEDED] * 100
        store = await shop.app._store()
        assert await store.processes.all(at=None) == []

    run(story())


def test_a_burst_does_not_end_before_a_job_that_came_to_be_due_late(
    shop: Shop, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever claims from PostgreSQL does not look there again while this test lasts.
    monkeypatch.setattr(hints, "NEAR_SHARE", 1e9)
    monkeypatch.setattr(hints, "NEAR_EVERY", 1e9)
    late: list[JobHandle[None]] = []

    @shop.app.task
    async def first(n: int) -> None:
        if n == 2:
            put = NewJob(task="last", payload=b"{}", run_at=datetime.now(UTC) - timedelta(hours=3))
            late.extend(await shop.app.aenqueue_many([put]))

    @shop.app.task
    async def last() -> None:
        pass

    async def story() -> None:
        await shop.app.aenqueue_many(first.job(n) for n in range(3))
        async with asyncio.timeout(30):
            await aserve(shop.app, burst=True, scheduler=False)
        [handle] = late
        assert (await shop.job(handle.id)).state is JobState.SUCCEEDED

    run(story())


def test_stop_lets_running_jobs_end_and_claims_no_more(shop: Shop, run: Any) -> None:
    gate = asyncio.Event()

    @shop.app.task
    async def slow() -> str:
        await gate.wait()
        return "done"

    async def story() -> None:
        first = await slow.aenqueue()
        serving = shop.start()
        await until(lambda: shop.heard.of(RunStarted))
        shop.processes[0].stop()
        late = await slow.aenqueue()
        await asyncio.sleep(0.1)
        gate.set()
        async with asyncio.timeout(20):
            await serving

        assert (await shop.job(first.id)).state is JobState.SUCCEEDED
        assert (await shop.job(late.id)).state is JobState.READY
        assert [event.released for event in shop.heard.of(ProcessStopped)] == [0]

    run(story())


@pytest.mark.parametrize("at_once", [True, False])
def test_a_second_stop_aborts_and_gives_the_jobs_back(shop: Shop, run: Any, at_once: bool) -> None:
    @shop.app.task
    async def endless() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        handle = await endless.aenqueue()
        serving = shop.start()
        await until(lambda: shop.heard.of(RunStarted))
        process = shop.processes[0]
        process.stop()
        if not at_once:
            await asyncio.sleep(0.2)
        process.stop()
        async with asyncio.timeout(15):
            await serving

        job = await shop.job(handle.id)
        assert (job.state, job.failures, job.crashes) == (JobState.READY, 0, 0)
        assert process.aborted
        assert [event.released for event in shop.heard.of(ProcessStopped)] == [1]

    run(story())


def test_a_handler_that_will_not_end_is_abandoned_and_its_job_given_back(database_url: str, run: Any) -> None:
    shop = Shop(database_url, **{"worker.shutdown_timeout": "10ms"})
    gate = asyncio.Event()

    @shop.app.task
    async def stubborn() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await gate.wait()
        await gate.wait()

    async def story() -> None:
        handle = await stubborn.aenqueue()
        serving = shop.start(scheduler=False)
        await until(lambda: shop.heard.of(RunStarted))
        shop.processes[0].stop()
        async with asyncio.timeout(30):
            await serving
        job = await shop.job(handle.id)
        assert (job.state, job.failures) == (JobState.READY, 0)
        gate.set()
        await until(lambda: len(asyncio.all_tasks()) == 1)
        assert [r.verdict for r in await (await shop.app._store()).runs.of(handle.id)] == [Verdict.RELEASED]
        await shop.app.aclose()

    run(story())


def test_cancelling_a_process_leaves_no_heart_beating_and_no_claim_held(shop: Shop, run: Any) -> None:
    @shop.app.task
    async def endless() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        handle = await endless.aenqueue()
        serving = shop.start()
        await until(lambda: shop.heard.of(RunStarted))
        serving.cancel()
        async with asyncio.timeout(20):
            await asyncio.gather(serving, return_exceptions=True)

        assert not [t for t in threading.enumerate() if t.name == "mainspring-heartbeat"]
        assert (await shop.job(handle.id)).state is JobState.READY

    run(story())


def test_a_scheduler_alone_fires_and_runs_nothing(shop: Shop, run: Any) -> None:
    @shop.app.task
    async def tick() -> None: ...

    shop.app.schedule("often", tick, every="1s")

    async def story() -> None:
        serving = shop.start(worker=False)
        store = await shop.app._store()

        async def fired() -> bool:
            return len(await store.slots.of("often", limit=5)) >= 1

        await until_async(fired)
        [member] = await store.processes.all(at=None)
        assert member.role is Role.SCHEDULER
        shop.processes[0].stop()
        async with asyncio.timeout(20):
            await serving
        assert all(job.state is JobState.READY for job in await store.jobs.find(JobFilter(), at=None))
        assert shop.heard.of(RunStarted) == []

    run(story())


def test_a_database_in_memory_serves_worker_and_scheduler_in_one_process(run: Any) -> None:
    shop = Shop("sqlite://:memory:")
    slots: list[object] = []

    @shop.app.task
    async def tick(ctx: Context) -> None:
        slots.append(ctx.slot)

    shop.app.schedule("often", tick, every="1s")

    async def story() -> None:
        serving = shop.start()
        await until(lambda: len(slots) >= 2)
        shop.processes[0].stop()
        async with asyncio.timeout(20):
            await serving
        await shop.app.aclose()
        assert shop.app._in_memory is not None
        await shop.app._in_memory.close()

    run(story())
    assert len(slots) == len(set(slots))


def test_blocking_enqueue_works_from_any_thread_and_stores_the_job(shop: Shop, run: Any) -> None:
    @shop.app.task
    def note(n: int) -> None: ...

    handles: list[int] = []
    threads = [
        threading.Thread(target=lambda n=n: handles.append(note.enqueue(n).id))  # type: ignore[misc]
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len(set(handles)) == 8
    assert all(run(shop.job(handle)).state is JobState.READY for handle in handles)


def test_blocking_enqueue_is_refused_where_it_would_block_an_event_loop(shop: Shop, run: Any) -> None:
    @shop.app.task
    def note() -> None: ...

    async def story() -> None:
        with pytest.raises(UsageError, match="aenqueue"):
            note.enqueue()

    run(story())


def test_two_event_loops_may_enqueue_with_one_app(shop: Shop, run: Any) -> None:
    @shop.app.task
    def note() -> None: ...

    async def from_its_own_loop() -> int:
        try:
            return (await note.aenqueue()).id
        finally:
            await shop.app.aclose()

    ids = [asyncio.run(from_its_own_loop()) for _ in range(2)]
    threads_ids: list[int] = []
    threads = [
        threading.Thread(target=lambda: threads_ids.append(asyncio.run(from_its_own_loop())))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert len({*ids, *threads_ids}) == 6


def test_a_portal_starts_anew_in_a_forked_child() -> None:
    async def answer() -> int:
        return os.getpid()

    async def nothing() -> None: ...

    portal = Portal(nothing)

    assert portal.call(answer, instead="x") == os.getpid()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        os.write(write, str(portal.call(answer, instead="x")).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == str(child).encode()
    os.close(read)
    os.close(write)
    portal.close()


def test_a_portal_whose_last_call_fails_ends_its_thread_all_the_same() -> None:
    async def nothing() -> None: ...

    async def fail() -> None:
        raise RuntimeError("no")

    portal = Portal(fail)
    portal.call(nothing, instead="x")
    with pytest.raises(RuntimeError):
        portal.close()

    assert not [t for t in threading.enumerate() if t.name == "mainspring-blocking"]
