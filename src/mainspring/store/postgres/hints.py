"""Where the last claims ended, so that the next one need not walk over what is taken or dead.

Rows that were claimed or deleted stay in the index until vacuum has passed, and under a held
snapshot it cannot. A claim that starts at the head of the index then gets slower with every job
done; one that starts behind the last row claimed does not. What lies before the hint (jobs given
back, late commits) is found by sweeps from the head: whenever a hinted claim comes back short, and
from time to time under full load, but never more than a twentieth of the time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mainspring.clock import Clock

SWEEP_EVERY_SECONDS = 1.0
SWEEP_SHARE = 20.0

Key = tuple[int, int]
Place = tuple[datetime, int]


class Hints:
    """The last place claimed in each (queue, priority), and when the head was last looked at."""

    def __init__(self, clock: Clock, *, enabled: bool) -> None:
        self._clock = clock
        self._enabled = enabled
        self._places: dict[Key, Place] = {}
        self._swept_at = clock.monotonic()
        self._sweep_took = 0.0

    def places(self) -> dict[Key, Place]:
        """Where to start; empty when it is time to look from the head again."""
        rested = self._clock.monotonic() - self._swept_at
        if rested >= max(SWEEP_EVERY_SECONDS, SWEEP_SHARE * self._sweep_took):
            return {}
        return self._places

    def may_sweep(self) -> bool:
        """Whether a claim that came back short should look from the head at once."""
        return self._clock.monotonic() - self._swept_at >= SWEEP_SHARE * self._sweep_took

    def swept(self, began: float) -> None:
        """A look from the head has ended."""
        self._swept_at = self._clock.monotonic()
        self._sweep_took = self._swept_at - began

    def note(self, claimed: Iterable[tuple[Key, Place]]) -> None:
        """Remember the furthest place claimed in each lane."""
        if not self._enabled:
            return
        for key, place in claimed:
            if key not in self._places or place > self._places[key]:
                self._places[key] = place

    def forget(self) -> None:
        """Something was put back before the hints: start from the head next time."""
        self._places.clear()
