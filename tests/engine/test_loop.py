"""A cycle: pass after pass, whatever they raise."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from mainspring.entropy import SeededEntropy
from mainspring.errors import StoreUnavailable
from mainspring.process.loop import LONGEST_BACKOFF, Cycle
from mainspring.telemetry.events import (
    Event,
    LoopFailed,
    LoopStalled,
    StoreRecovered,
    StoreTrouble,
    Telemetry,
)


class Troubled:
    """Raises what it is given, pass after pass, then works."""

    name = "troubled"

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)
        self.on_peace: Callable[[], None] = lambda: None

    async def tick(self) -> timedelta:
        if self.troubles:
            raise self.troubles.pop(0)
        self.on_peace()
        return timedelta()


def heard_from(run: Any, loop: Troubled, **options: Any) -> list[Event]:
    heard: list[Event] = []

    async def story() -> None:
        cycle = Cycle(loop, Telemetry(heard.append), SeededEntropy(7), **options)
        loop.on_peace = cycle.stop
        async with asyncio.timeout(30):
            await cycle.run()

    run(story())
    return heard


def test_trouble_with_the_store_is_waited_out_with_growing_pauses(run: Any) -> None:
    heard = heard_from(run, Troubled(*[StoreUnavailable("down")] * 5))

    pauses = [event.again_in for event in heard if isinstance(event, StoreTrouble)]
    assert len(pauses) == 5
    assert pauses[0] < pauses[-1] <= LONGEST_BACKOFF
    assert heard[-1] == StoreRecovered(loop="troubled")


def test_a_heart_in_trouble_pauses_no_longer_than_its_lease_allows(run: Any) -> None:
    longest = timedelta(milliseconds=150)

    heard = heard_from(run, Troubled(*[StoreUnavailable("down")] * 8), longest=longest)

    assert all(event.again_in <= longest for event in heard if isinstance(event, StoreTrouble))


def test_a_defect_is_told_and_does_not_end_the_loop(run: Any) -> None:
    [told, _] = heard_from(run, Troubled(ZeroDivisionError("oops")))

    assert isinstance(told, LoopFailed)
    assert isinstance(told.error, ZeroDivisionError)


class Stuck(Troubled):
    """Waits for ever in its first pass."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0

    async def tick(self) -> timedelta:
        self.passes += 1
        if self.passes == 1:
            await asyncio.Event().wait()
        return await super().tick()


def test_a_pass_without_progress_is_ended_and_told_and_the_loop_goes_on(run: Any) -> None:
    limit = timedelta(milliseconds=50)

    heard = heard_from(run, Stuck(), pass_within=limit)

    assert heard[0] == LoopStalled(loop="troubled", after=limit)
