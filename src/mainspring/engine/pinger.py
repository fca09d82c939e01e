"""Tells an outside address that all goes on, for as long as it does."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.errors import MainspringError
from mainspring.targets.outbound import Outbound
from mainspring.telemetry import PingFailed, Telemetry


class Pinger:
    """A watch outside notices when it stops: that is the only sign that a dead cluster can give."""

    def __init__(self, outbound: Outbound, every: timedelta, clock: Clock, telemetry: Telemetry) -> None:
        self._outbound = outbound
        self._every = every.total_seconds()
        self._clock = clock
        self._telemetry = telemetry
        self._next = clock.monotonic()

    async def ping(self, hindrance: str | None) -> None:
        """If it is time: fetch the address, or say why not."""
        now = self._clock.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        problem = hindrance
        if problem is None:
            try:
                await self._outbound.send("GET", now=self._clock.now())
            except MainspringError as error:
                problem = str(error)
        if problem is not None:
            self._telemetry.emit(PingFailed(target=self._outbound.shown, reason=problem))
