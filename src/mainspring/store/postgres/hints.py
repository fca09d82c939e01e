"""Where the last claims ended, so that the next one need not walk over what is taken or dead.

Rows that were claimed or deleted stay in the index until vacuum has passed. A claim that starts at the head
of the index gets slower with every job done until then; one that starts behind the last row claimed does
not. What lies before the hints (jobs given back, late commits) is found by sweeps: when a hinted claim comes
back short, and from time to time under full load.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mainspring.clock import Clock
from mainspring.store.postgres.sweep import EVERYTHING, Place, Stretch, Sweep

Key = tuple[int, int]
MOST_LOOKS = 64
"""Of one claim that is short of jobs."""


class Hints:
    """The last place claimed in each (queue, priority), and what is to be looked at before them."""

    def __init__(self, clock: Clock, *, enabled: bool) -> None:
        self._enabled = enabled
        self._sweep = Sweep(clock)
        self._last: Place | None = None
        self._asked: object = None
        self._idle = False
        self.places: dict[Key, Place] = {}

    @property
    def floor(self) -> Place | None:
        """Where to start in a lane that has no hint."""
        return self._sweep.floor

    def looks(self, queue_ids: Iterable[int], task_ids: Sequence[int]) -> Iterator[Stretch | None]:
        """Where one claim looks, as long as it is short of jobs. None: behind the hints."""
        if self._asked != (asked := (frozenset(queue_ids), task_ids)):
            # What is not there for the one may be there for the other.
            self._asked = asked
            self._sweep.start_over()
        if not self._enabled or (not self.places and self.floor is None):
            yield EVERYTHING
            return
        idle, self._idle = self._idle, False
        before = self._sweep.newest(short=False) or self._sweep.older(idle=idle)
        if before is not None:
            yield before
        if before == EVERYTHING:
            return
        yield None
        self._idle = True  # or nobody would ask for more
        if (before is None or before.until) and (newest := self._sweep.newest(short=True)):
            yield newest
        for _ in range(MOST_LOOKS):
            if (older := self._sweep.older(idle=True)) is None:
                return
            yield older
            if older.after is None:
                return

    def looked(
        self,
        stretch: Stretch | None,
        began: float,
        lasts: Iterable[tuple[Key, Place]],
        *,
        full: bool,
    ) -> None:
        """A look has ended; these are the furthest that it found in each lane."""
        if not self._enabled:
            return
        for key, place in lasts:
            if stretch is not None and stretch.is_piece:
                # There may be more of them, as after a pause: from here on they come in order.
                if full:
                    self.places[key] = place
            elif key not in self.places or place > self.places[key]:
                self.places[key] = place
            if self._last is None or place > self._last:
                self._last = place
        if stretch is None:
            self._sweep.usual(began)
        else:
            self._sweep.looked(stretch, began, full=full, last=self._last)

    def put_back(self) -> None:
        """Something was put before the hints: it shall be found by the next claim."""
        self._sweep.owe()
