"""The only module that reads the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the engine gets its time from."""

    def now(self) -> datetime:
        """Aware UTC time, for arithmetic inside this process and for what people read."""

    def stamp(self) -> datetime | None:
        """The moment to write into the store; None lets the database's clock decide.

        Production answers None, so that leases taken on one machine and judged on another are
        measured by the same clock. Tests and simulation answer a fixed instant.
        """

    def monotonic(self) -> float:
        """Seconds that never go back, for waits and for our own view of a lease."""


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def stamp(self) -> datetime | None:
        return None

    monotonic = staticmethod(time.monotonic)
