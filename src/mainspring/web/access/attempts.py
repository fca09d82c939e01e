"""Wrong attempts to sign in, counted in a row for each address and each account."""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta

from mainspring.clock import Clock

ALLOWED = 10
LOCKED_FOR = timedelta(minutes=1)
FORGOTTEN_AFTER = timedelta(minutes=10)
"""Without a wrong one for so long, the count begins anew."""
MOST = 10_000
"""Addresses and accounts that are remembered; the one not heard of for longest goes first."""


class Attempts:
    """Kept in this process: of several servers, each counts its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, *keys: str) -> timedelta:
        """How long whoever has one of these keys must wait before the next attempt; zero for not at all."""
        left = max((self._left(key) for key in keys), default=0.0)
        return timedelta(seconds=left)

    def failed(self, *keys: str) -> None:
        """One more that was wrong."""
        now = self._clock.monotonic()
        for key in keys:
            count, last = self._wrong.pop(key, (0, now))
            row = count if now - last < FORGOTTEN_AFTER.total_seconds() else 0
            self._wrong[key] = row + 1, now
            if len(self._wrong) > MOST:
                self._wrong.popitem(last=False)

    def succeeded(self, *keys: str) -> None:
        """One that was right: the row has ended."""
        for key in keys:
            self._wrong.pop(key, None)

    def _left(self, key: str) -> float:
        count, last = self._wrong.get(key, (0, 0.0))
        if count < ALLOWED:
            return 0.0
        return max(0.0, last + LOCKED_FOR.total_seconds() - self._clock.monotonic())
