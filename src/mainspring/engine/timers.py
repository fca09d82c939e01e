"""The timeouts of runs: one timer for each length, however many runs have it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")

_EARLY = 0.001
"""Seconds: as fine as the clocks of event loops are."""


class Timers(Generic[R]):
    """Runs under a timeout, told when it ends.

    Of those with the same length, the first to begin is the first to be due: a dict keeps them in that
    order, and forgets one that has ended in time at no cost. The timer of a length is set anew only when it
    goes off.
    """

    def __init__(self, late: Callable[[R], None]) -> None:
        self._late = late
        self._running: dict[float, dict[R, float]] = {}

    def start(self, run: R, seconds: float) -> None:
        """It should be over so many seconds from now."""
        loop = asyncio.get_running_loop()
        running = self._running.get(seconds)
        if running is None:
            running = self._running[seconds] = {}
            loop.call_later(seconds, self._look, seconds)
        running[run] = loop.time() + seconds

    def stop(self, run: R, seconds: float) -> None:
        """It is over."""
        running = self._running.get(seconds)
        if running is not None:
            running.pop(run, None)

    def _look(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        # By the loop's own clock, which set the timer off: a little early counts as due.
        running, now = self._running[seconds], loop.time() + _EARLY
        late, first = [], None
        for run, due in running.items():
            if due > now:
                first = due
                break
            late.append(run)
        for run in late:
            del running[run]
        if first is None:
            del self._running[seconds]
        else:
            loop.call_later(first - now, self._look, seconds)
        for run in late:
            self._late(run)
