"""Runs a loop's passes one after another, and waits in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.telemetry.events import LoopFailed, LoopStalled, StoreRecovered, StoreTrouble, Telemetry
from mainspring.telemetry.progress import LoopProgress
from mainspring.waiting import until

FIRST_BACKOFF = timedelta(milliseconds=100)
LONGEST_BACKOFF = timedelta(seconds=2)
PASS_WITHIN = timedelta(minutes=5)
"""No pass takes this long: every call to a store has a limit of its own, far below."""


class Loop(Protocol):
    """Something that is done over and over."""

    name: str

    async def tick(self) -> timedelta:
        """Do one pass; answer how long to wait before the next."""


class Cycle:
    """One loop at work, until `stop` is called. No error ends it: trouble with the store is
    waited out with a jittered, growing pause, and a defect is reported and tried again. A pass that
    makes no progress is ended and told, so that no loop is ever alive and silent."""

    def __init__(
        self,
        loop: Loop,
        telemetry: Telemetry,
        entropy: Entropy,
        *,
        longest: timedelta = LONGEST_BACKOFF,
        pass_within: timedelta = PASS_WITHIN,
        progress: LoopProgress | None = None,
        mend: Callable[[Exception], Awaitable[object]] | None = None,
    ) -> None:
        """`mend` hears of every error that a pass met, and may do away with its cause."""
        self._loop = loop
        self._mend = mend
        self._pass_within = pass_within
        self._longest = min(longest, LONGEST_BACKOFF)
        self._telemetry = telemetry
        self._entropy = entropy
        self._wake = asyncio.Event()
        self._stopping = False
        self._troubles = 0
        self._mark = None if progress is None else progress.mark(loop.name)

    def wake(self) -> None:
        """Have the next pass now. Call it on the cycle's own event loop."""
        self._wake.set()

    def stop(self) -> None:
        """Have no further pass. Call it on the cycle's own event loop."""
        self._stopping = True
        self._wake.set()

    async def run(self) -> None:
        """Pass after pass."""
        while not self._stopping:
            self._wake.clear()
            if self._mark is not None:
                self._mark.begins()
            rest = await self._pass()
            if self._mark is not None:
                self._mark.rests(rest)
            if rest and not self._stopping:
                await until(self._wake, rest)
        if self._mark is not None:
            self._mark.ends()

    async def _pass(self) -> timedelta:
        try:
            async with asyncio.timeout(self._pass_within.total_seconds()) as watchdog:
                rest = await self._loop.tick()
        except StoreError as error:
            rest = self._back_off()
            self._telemetry.emit(StoreTrouble.of(self._loop.name, error, rest))
            await self._mended(error)
            return rest
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - our own defects, and user code
            rest = self._back_off()
            if watchdog.expired():
                self._telemetry.emit(LoopStalled(loop=self._loop.name, after=self._pass_within))
            else:
                self._telemetry.emit(LoopFailed(loop=self._loop.name, error=error, again_in=rest))
                await self._mended(error)
            return rest
        if self._troubles:
            self._troubles = 0
            self._telemetry.emit(StoreRecovered(loop=self._loop.name))
        return rest

    async def _mended(self, error: BaseException) -> None:
        if self._mend is None or not isinstance(error, Exception):
            return
        try:
            async with asyncio.timeout(self._pass_within.total_seconds()):
                await self._mend(error)
        except Exception as other:  # noqa: BLE001 - the loop must outlive this, too
            self._telemetry.emit(LoopFailed(loop=self._loop.name, error=other, again_in=FIRST_BACKOFF))

    def _back_off(self) -> timedelta:
        longest: timedelta = min(FIRST_BACKOFF * (1 << self._troubles), self._longest)
        self._troubles = min(self._troubles + 1, 10)
        return longest * (0.5 + 0.5 * self._entropy.fraction())
