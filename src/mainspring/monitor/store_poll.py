"""Asks the store how the whole stands, now and then, and remembers what it said."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from mainspring.admin.health.status import Status, look, troubles
from mainspring.clock import Clock
from mainspring.config import Settings
from mainspring.errors import StoreError
from mainspring.model.alert import Trouble
from mainspring.model.health import StoreHealth
from mainspring.store.store import Store

WITHIN = timedelta(seconds=10)
"""How long the store may take to answer all of it."""
AGAIN = timedelta(seconds=2)
HEALTH_EVERY = timedelta(minutes=1)
"""How often tables are looked at: they change slowly, and the look is not for nothing."""
BELIEVED = 4
"""For so many times the interval are figures believed."""


class StorePoll:
    """A loop, for processes that have loops; others ask `refreshed` when they are asked themselves."""

    name = "store_poll"

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store, self._clock = store, clock
        self._every, self._alerts = settings.metrics.every, settings.alerts
        self._status: Status | None = None
        self._at: float | None = None
        self._tried_at: float | None = None
        self._asking = asyncio.Lock()
        self.answers = False
        """Whether the store answered, and its schema is ours, when it was last asked."""
        self.trouble = "the store has not been asked yet"
        self.skew = timedelta()
        self.health: StoreHealth | None = None
        self._health_at: float | None = None

    async def tick(self) -> timedelta:
        first = self._at is None
        await self._ask()
        # The first look comes before this process has joined the fleet.
        return min(AGAIN, self._every) if first else self._every

    def troubles(self, status: Status) -> list[Trouble]:
        """What is wrong with what was seen."""
        return troubles(status, self._alerts)

    async def refreshed(self) -> None:
        """Ask, unless that was done lately; what goes wrong is remembered, not raised."""
        async with self._asking:
            now = self._clock.monotonic()
            if self._tried_at is None or now - self._tried_at >= self._every.total_seconds():
                try:
                    await self._ask()
                except StoreError:
                    return  # in `trouble`

    def fresh(self) -> Status | None:
        """What the store said, unless it is too long ago. Safe from any thread."""
        age = self.age()
        return None if age is None or age > BELIEVED * self._every.total_seconds() else self._status

    def age(self) -> float | None:
        """Seconds since the store last answered."""
        return None if self._at is None else self._clock.monotonic() - self._at

    @property
    def ready(self) -> bool:
        """Whether the store can be worked with, and was lately."""
        return self.answers and self.fresh() is not None

    async def _ask(self) -> None:
        self._tried_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(WITHIN.total_seconds()):
                await self._store.verify()
                asked = self._clock.now()
                status = await look(self._store, self._clock, self._alerts)
        except (StoreError, TimeoutError) as error:
            self.answers, self.trouble = False, str(error) or "no answer in time"
            if isinstance(error, TimeoutError):
                raise StoreError(f"no answer within {WITHIN.total_seconds():g} s") from None
            raise
        self._status, self._at = status, self._clock.monotonic()
        self.answers, self.trouble = True, ""
        # A stamp of a test's clock is no other clock.
        self.skew = timedelta() if self._clock.stamp() is not None else status.at - asked
        if self._health_at is None or self._at - self._health_at >= HEALTH_EVERY.total_seconds():
            self._health_at = self._at
            async with asyncio.timeout(WITHIN.total_seconds()):
                self.health = await self._store.health.look()
