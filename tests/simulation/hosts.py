"""Hosts that schedulers run on: with clocks of their own, and ways to die or freeze between two calls of
the store. The store behind them is the real one."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

from mainspring.clock import Clock
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.around import around
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.triggers.misfire import BREAKER

POLL = timedelta(seconds=1)
CHUNK = 1
"""So that schedules of one slot take a call each, and a scheduler can die or freeze between two of them."""


class Died(Exception):
    """The host is gone: whatever was under way ends here."""


class SkewedClock:
    """A host whose wall clock is wrong; the database's, which stamps what is written, is everybody's."""

    def __init__(self, shared: ManualClock, skew: timedelta) -> None:
        self._shared, self._skew = shared, skew

    def now(self) -> datetime:
        return self._shared.now() + self._skew

    def stamp(self) -> datetime | None:
        return self._shared.stamp()

    def monotonic(self) -> float:
        return self._shared.monotonic()


class Wire:
    """A host's way to the store. On order it breaks at the so-manieth call from now: before the store
    has heard of it, or after it has done it; or the host freezes there, and the call goes out late."""

    def __init__(self, store: Any, clock: Clock) -> None:
        self._store, self._clock = around(store, self._call), clock
        self._left, self._way = -1, ""
        self._thaw = asyncio.Event()
        self.stands = asyncio.Event()
        """Set while the host is frozen."""

    def order(self, way: str, *, calls: int) -> None:
        """`way` is "before", "after" or "freeze"."""
        self._left, self._way = calls, way

    def thaw(self) -> None:
        self._thaw.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def _call(self, name: str, method: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._left -= 1
        way = self._way if self._left == 0 else ""
        if way == "before":
            raise Died(f"before {name}")
        if way == "freeze":
            self.stands.set()
            await self._thaw.wait()
            self.stands.clear()
            if "at" in named:  # the database reads its clock when the call arrives, not when it was meant
                named["at"] = self._clock.stamp()
        answer = await method(*args, **named)
        if way == "after":
            raise Died(f"after {name}")
        return answer


class Host:
    """One scheduler on one machine, ticked by hand."""

    def __init__(self, store: Any, clock: ManualClock, skew: timedelta, *, breaker: int = BREAKER) -> None:
        skewed = SkewedClock(clock, skew)
        self.wire = Wire(store, skewed)
        wired: Any = self.wire
        self._scheduler = Scheduler(wired, skewed, Telemetry(), poll=POLL, chunk=CHUNK, breaker=breaker)
        self._tick: asyncio.Task[timedelta] | None = None

    @property
    def is_frozen(self) -> bool:
        return self._tick is not None

    async def tick(self) -> timedelta | None:
        """One pass; None when the host froze in it. Raises Died if it died."""
        self._tick = asyncio.create_task(self._scheduler.tick())
        frozen = asyncio.create_task(self.wire.stands.wait())
        await asyncio.wait({self._tick, frozen}, return_when=asyncio.FIRST_COMPLETED)
        frozen.cancel()
        return None if self.wire.stands.is_set() else await self._end()

    async def thaw(self) -> None:
        """Let a frozen host finish the pass it was in, with what it had in mind."""
        self.wire.thaw()
        await self._end()

    async def close(self) -> None:
        """Give up the pass it may still be frozen in."""
        if self._tick is not None:
            self._tick.cancel()
            await asyncio.wait({self._tick})

    async def _end(self) -> timedelta:
        tick, self._tick = self._tick, None
        assert tick is not None
        return await tick
