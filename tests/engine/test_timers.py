"""One timer for each length of timeout."""

from __future__ import annotations

import asyncio
from typing import Any

from mainspring.worker.active_runs import Timers
from tests.engine.kit import until


def test_only_what_still_runs_when_its_time_is_over_is_told(run: Any) -> None:
    late: list[str] = []

    async def story() -> None:
        timers = Timers[str](late.append)
        for name in ("a", "b", "c"):
            timers.start(name, 0.02)
        timers.start("patient", 30)
        timers.stop("b", 0.02)
        await until(lambda: len(late) == 2)
        assert late == ["a", "c"]

    run(story())


def test_a_later_one_of_the_same_length_has_its_whole_time(run: Any) -> None:
    late: dict[str, float] = {}

    async def story() -> None:
        loop = asyncio.get_running_loop()
        timers = Timers[str](lambda name: late.setdefault(name, loop.time()))
        began = loop.time()
        timers.start("first", 0.05)
        await asyncio.sleep(0.03)
        later = loop.time()
        timers.start("second", 0.05)
        await until(lambda: len(late) == 2)
        assert late["first"] - began >= 0.049
        assert late["second"] - later >= 0.049

    run(story())


def test_many_of_one_length_set_one_timer(run: Any) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        set_timers: list[float] = []
        call_later = loop.call_later

        def counted(delay: float, *args: Any) -> asyncio.TimerHandle:
            set_timers.append(delay)
            return call_later(delay, *args)

        loop.call_later = counted  # type: ignore[method-assign, assignment]
        timers = Timers[int](lambda number: None)
        for number in range(1000):
            timers.start(number, 60.0)
            timers.stop(number, 60.0)
        assert set_timers == [60.0]

    run(story())


def test_one_that_starts_after_all_others_have_ended_is_told_too(run: Any) -> None:
    late: list[str] = []

    async def story() -> None:
        timers = Timers[str](late.append)
        timers.start("a", 0.01)
        await until(lambda: late == ["a"])
        timers.start("b", 0.01)
        await until(lambda: late == ["a", "b"])

    run(story())
