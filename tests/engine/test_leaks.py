"""Handlers that will not end: their runs are settled in time, and what they occupy is given up."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from mainspring.model.job import JobState
from mainspring.model.run import Verdict
from mainspring.tasks.context import Context
from mainspring.tasks.retry import Retry
from mainspring.telemetry.events import HandlerLeaked, LoopBlocked
from mainspring.worker import active_runs, threads
from mainspring.worker.worker import Bridge
from tests.engine.kit import MINUTE, Floor, until

TWICE = Retry(attempts=2, base=0)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(active_runs, "WRITE_OFF_AFTER", timedelta(milliseconds=50))
    monkeypatch.setattr(threads, "LINGER", timedelta(milliseconds=50))
    yield


class Deaf:
    """A coroutine that swallows every cancellation until it is let go."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.seen: list[bool] = []

    async def __call__(self, ctx: Context) -> str:
        while not self.gate.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.gate.wait()
            self.seen.append(ctx.cancelled)
        return "at last"


def _deaf(floor: Floor, **options: Any) -> Deaf:
    deaf = Deaf()

    @floor.task(name="deaf", **options)
    async def handler(ctx: Context) -> str:
        return await deaf(ctx)

    return deaf


def test_a_coroutine_that_swallows_its_timeout_has_failed_and_its_hand_is_given_up(
    floor: Floor, run: Any
) -> None:
    deaf = _deaf(floor, timeout="20ms", retry=TWICE)
    leaks: list[int] = []

    async def story() -> None:
        floor.worker.signals.handler_lost.connect(lambda: leaks.append(floor.active_runs.size))
        job_id = await floor.put("deaf", max_attempts=2)
        await floor.work()

        job = await floor.job(job_id)
        assert (job.failures, job.errors[0].type, job.worker_id) == (1, "TimeoutError", None)
        assert (floor.active_runs.size, floor.active_runs.free, leaks) == (7, 7, [7])
        [leaked] = floor.heard.of(HandlerLeaked)
        assert (leaked.job_id, leaked.task, leaked.what, leaked.left) == (job_id, "deaf", "slot", 7)
        assert deaf.seen == [True]

        deaf.gate.set()
        await until(lambda: floor.active_runs.size == 8)
        assert floor.result_writer.pending == 0, "what it returned in the end counts for nothing"

    run(story())


def test_a_coroutine_that_swallows_its_deadline_is_dead_and_its_slot_is_given_up(
    floor: Floor, run: Any
) -> None:
    deaf = _deaf(floor)

    async def story() -> None:
        job_id = await floor.put("deaf", expires_at=floor.clock.now() + timedelta(milliseconds=30))
        await floor.work()

        [dead] = await floor.dead()
        assert (dead.id, dead.reason) == (job_id, "expired")
        assert [event.what for event in floor.heard.of(HandlerLeaked)] == ["slot"]
        assert floor.active_runs.size == 7
        assert deaf.seen == [True], "its context says that it should end"
        deaf.gate.set()
        await until(lambda: floor.active_runs.size == 8)

    run(story())


def test_a_released_coroutine_that_will_not_end_goes_back_at_no_cost(floor: Floor, run: Any) -> None:
    deaf = _deaf(floor)

    async def story() -> None:
        job_id = await floor.put("deaf")
        await floor.join()
        await floor.claimer.tick()
        await asyncio.sleep(0)
        floor.active_runs.release_all()
        await floor.finish()

        job = await floor.job(job_id)
        assert (job.state, job.failures) == (JobState.READY, 0)
        assert [each.verdict for each in await floor.runs(job_id)] == [Verdict.RELEASED]
        assert floor.active_runs.size == 7
        deaf.gate.set()
        await until(lambda: floor.active_runs.size == 8)

    run(story())


def test_a_dropped_coroutine_that_will_not_end_frees_its_place_and_settles_nothing(
    floor: Floor, run: Any
) -> None:
    deaf = _deaf(floor)

    async def story() -> None:
        job_id = await floor.put("deaf")
        await floor.join()
        await floor.claimer.tick()
        await asyncio.sleep(0)
        floor.active_runs.drop_all()
        await until(lambda: not floor.active_runs.running)

        assert (floor.result_writer.pending, floor.active_runs.size) == (0, 7)
        assert await floor.runs(job_id) == []
        deaf.gate.set()
        await until(lambda: floor.active_runs.size == 8)

    run(story())


def test_a_coroutine_that_ends_in_time_is_not_given_up(floor: Floor, run: Any) -> None:
    @floor.task(timeout="10ms", retry=TWICE)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def story() -> None:
        await floor.put("slow", max_attempts=2)
        await floor.work()
        await asyncio.sleep(0.1)

        assert floor.heard.of(HandlerLeaked) == []
        assert floor.active_runs.size == 8

    run(story())


def test_a_thread_that_will_not_end_is_given_up_until_it_does(floor: Floor, run: Any) -> None:
    gate, seen = threading.Event(), []

    @floor.task(timeout="20ms", retry=TWICE)
    def stuck(ctx: Context) -> None:
        gate.wait(30)
        seen.append(ctx.cancelled)

    async def story() -> None:
        job_id = await floor.put("stuck", max_attempts=2)
        await floor.work()

        assert (await floor.job(job_id)).errors[0].type == "TimeoutError"
        [leaked] = floor.heard.of(HandlerLeaked)
        assert (leaked.what, leaked.left, floor.worker.threads.left) == ("thread", 3, 3)
        assert not floor.worker.worn_out

        gate.set()
        await until(lambda: floor.worker.threads.left == 4)
        assert seen == [True], "its context told it that its time was over"

    run(story())


@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("asks", [False, True], ids=["plain", "with context"])
def test_a_function_that_ends_soon_after_its_time_was_too_late(
    floor: Floor, run: Any, monkeypatch: pytest.MonkeyPatch, asks: bool, raises: bool
) -> None:
    monkeypatch.setattr(threads, "LINGER", timedelta(seconds=20))
    gate = threading.Event()

    def late() -> str:
        gate.wait(30)
        return str(1 // 0) if raises else "too late"

    def with_context(ctx: Context) -> str:
        return late()

    floor.task(name="late", timeout="20ms", retry=TWICE)(with_context if asks else late)

    async def story() -> None:
        job_id = await floor.put("late", max_attempts=2)
        await floor.join()
        await floor.claimer.tick()
        [going] = floor.active_runs._runs.values()
        await until(lambda: going.late)
        gate.set()
        await floor.finish()

        job = await floor.job(job_id)
        assert (job.failures, [error.type for error in job.errors]) == (1, ["TimeoutError"])
        assert floor.heard.of(HandlerLeaked) == []

    run(story())


def test_a_function_that_is_told_to_end_twice_is_given_up_once(floor: Floor, run: Any) -> None:
    gate = threading.Event()

    @floor.task(timeout="20ms", retry=TWICE)
    def stuck() -> None:
        gate.wait(30)

    async def story() -> None:
        job_id = await floor.put("stuck", max_attempts=2)
        await floor.join()
        await floor.claimer.tick()
        [going] = floor.active_runs._runs.values()
        await until(lambda: going.late)
        floor.active_runs.release_all()
        await floor.finish()
        await asyncio.sleep(2 * threads.LINGER.total_seconds())  # the second look has been, too

        assert len(floor.heard.of(HandlerLeaked)) == 1
        assert floor.worker.threads.left == 3
        assert (await floor.job(job_id)).failures == 0, "we ended it, so it costs no attempt"
        gate.set()
        await until(lambda: floor.worker.threads.left == 4)

    run(story())


def test_a_function_that_waits_for_a_thread_is_given_back_without_a_run(new_floor: Any, run: Any) -> None:
    floor, gate = new_floor(threads=1), threading.Event()
    begun: list[int] = []

    @floor.task(timeout="30s")
    def waits() -> None:
        begun.append(1)
        gate.wait(30)

    async def story() -> None:
        first, second = await floor.put("waits"), await floor.put("waits")
        await floor.join()
        await floor.claimer.tick()
        await until(lambda: begun)
        assert floor.active_runs.release([second]) == 1
        gate.set()
        await floor.finish()

        assert (await floor.job(second)).state is JobState.READY
        assert await floor.runs(second) == []
        assert [each.verdict for each in await floor.runs(first)] == [Verdict.SUCCEEDED]
        assert begun == [1]

    run(story())


def test_a_worker_without_threads_is_worn_out(new_floor: Any, run: Any) -> None:
    floor, gate = new_floor(threads=1), threading.Event()

    @floor.task(timeout="20ms", retry=TWICE)
    def stuck() -> None:
        gate.wait(30)

    async def story() -> None:
        await floor.put("stuck", max_attempts=2)
        await floor.work()
        assert floor.worker.worn_out

        gate.set()
        await until(lambda: not floor.worker.worn_out)

    run(story())


def test_what_is_given_up_at_a_stop_is_no_news(floor: Floor, run: Any) -> None:
    deaf = _deaf(floor)

    async def story() -> None:
        await floor.put("deaf")
        await floor.join()
        await floor.claimer.tick()
        await asyncio.sleep(0)
        floor.active_runs.draining = True
        floor.active_runs.release_all()
        await floor.finish()

        assert floor.heard.of(HandlerLeaked) == []
        deaf.gate.set()
        await until(lambda: floor.active_runs.size == 8)

    run(story())


def test_the_heart_notices_a_blocked_event_loop_and_only_then(floor: Floor, run: Any) -> None:
    told: list[str] = []

    @floor.task(timeout="1m")
    async def blocks() -> None:
        bridge = Bridge(floor.worker, asyncio.get_running_loop())
        floor.worker.signals.loop_blocked.connect(lambda: told.append("blocked"))

        def heart() -> None:
            bridge.holding()
            floor.clock.advance(MINUTE)
            bridge.holding()
            assert told == []
            floor.clock.advance(active_runs.BLOCKED_AFTER + timedelta(seconds=1))
            bridge.holding()

        thread = threading.Thread(target=heart)
        thread.start()
        while thread.is_alive():  # nothing else can happen on the loop meanwhile
            time.sleep(0.001)  # noqa: ASYNC251

    async def story() -> None:
        job_id = await floor.put("blocks")
        await floor.work()

        assert told == ["blocked"]
        assert [event.job_id for event in floor.heard.of(LoopBlocked)] == [job_id]

    run(story())
