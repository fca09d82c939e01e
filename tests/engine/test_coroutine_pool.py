"""Tasks that work one run after another."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from mainspring.worker import executors as module
from mainspring.worker.executors import CoroutinePool
from tests.engine.kit import until

Work = Callable[[asyncio.Task[None]], Coroutine[Any, Any, None]]
mood: ContextVar[str] = ContextVar("mood", default="calm")


def new_hands() -> CoroutinePool[Work]:
    return CoroutinePool(lambda work, me: work(me), time.monotonic)


def test_runs_that_never_wait_are_done_in_order_by_one_task(run: Any) -> None:
    done: list[tuple[int, asyncio.Task[None]]] = []

    def numbered(number: int) -> Work:
        async def work(me: asyncio.Task[None]) -> None:
            assert asyncio.current_task() is me
            done.append((number, me))

        return work

    async def story() -> None:
        new_hands().give(map(numbered, range(50)))
        await until(lambda: len(done) == 50)

        assert [number for number, _ in done] == list(range(50))
        assert len({id(task) for _, task in done}) == 1

    run(story())


def test_a_run_that_waits_holds_up_no_other(run: Any) -> None:
    async def story() -> None:
        gate, begun, ended = asyncio.Event(), 0, 0

        async def work(me: asyncio.Task[None]) -> None:
            nonlocal begun, ended
            begun += 1
            await gate.wait()
            ended += 1

        new_hands().give([work] * 40)
        await until(lambda: begun == 40)
        assert ended == 0

        gate.set()
        await until(lambda: ended == 40)

    run(story())


def test_each_run_is_in_a_context_of_its_own(run: Any) -> None:
    seen: list[str] = []

    def moody(word: str, *, waits: bool) -> Work:
        async def work(me: asyncio.Task[None]) -> None:
            seen.append(mood.get())
            mood.set(word)
            if waits:
                await asyncio.sleep(0)
            assert mood.get() == word

        return work

    async def story() -> None:
        runs = [moody("angry", waits=False), moody("sad", waits=True), moody("glad", waits=False)]
        new_hands().give(runs)
        await until(lambda: len(seen) == 3)

        assert seen == ["calm"] * 3
        assert mood.get() == "calm"

    run(story())


def test_a_run_that_waits_has_its_task_to_itself(run: Any) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def waits(me: asyncio.Task[None]) -> None:
        tasks.append(me)
        await asyncio.sleep(0)

    async def story() -> None:
        hands = new_hands()
        hands.give([waits] * 30)
        await until(lambda: len(tasks) == 30)
        hands.give([waits])
        await until(lambda: len(tasks) == 31)
        assert len({id(task) for task in tasks}) == 31

    run(story())


def test_a_task_that_was_cancelled_works_no_more(run: Any) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def cancels_itself(me: asyncio.Task[None]) -> None:
        tasks.append(me)
        me.cancel()

    async def waits(me: asyncio.Task[None]) -> None:
        await asyncio.sleep(0)  # where a cancellation that is still on its way would come out
        tasks.append(me)

    async def story() -> None:
        new_hands().give([cancels_itself, waits])
        await until(lambda: len(tasks) == 2)
        assert tasks[0] is not tasks[1]

    run(story())


def test_a_defect_in_one_run_is_not_the_others(run: Any) -> None:
    told: list[dict[str, Any]] = []
    done: list[int] = []

    async def fails(me: asyncio.Task[None]) -> None:
        raise ZeroDivisionError

    async def works(me: asyncio.Task[None]) -> None:
        done.append(1)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        new_hands().give([fails, works, fails, works])
        await until(lambda: len(done) == 2)
        await until(lambda: gc.collect() >= 0 and len(told) == 2)  # told when the task is thrown away
        assert all(isinstance(each["exception"], ZeroDivisionError) for each in told)

    run(story())


def test_others_are_let_on_between_many_short_runs(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "YIELD_AFTER", 0.0)
    order: list[str] = []

    async def work(me: asyncio.Task[None]) -> None:
        order.append("run")

    async def story() -> None:
        new_hands().give([work] * 5)
        await asyncio.sleep(0)
        order.append("other")
        await until(lambda: order.count("run") == 5)
        assert order[-1] == "run"

    run(story())
