"""This process start's place in the fleet: its id and how long its lease surely lasts."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock

SURE = 0.8
"""The part of a lease that is counted on. In the rest our handlers are stopped, while it is still ours."""


class Membership:
    """Written by the heartbeat, and read by other parts on any thread."""

    def __init__(self, clock: Clock, lease: timedelta) -> None:
        self._clock = clock
        self._lease = lease.total_seconds()
        self._sure_from = 0.0
        self._renewed_at = 0.0
        self._outlasted = False
        self.id: int | None = None
        """None while we hold no lease."""
        self.suspended = False
        """True while a lease that could not be renewed runs out: nothing may be claimed."""

    @property
    def active(self) -> bool:
        """Whether claims may be taken."""
        return self.id is not None and not self.suspended

    def renewed(self, process_id: int, sent_at: float) -> None:
        """A lease was granted by a call sent at this monotonic moment: it lasts at least from then."""
        self._renewed_at = self._sure_from = sent_at
        self._outlasted = False
        self.suspended = False
        self.id = process_id

    def outlasts(self, at: float) -> bool:
        """No process could reach the store at this monotonic moment, so the reapers leave this one the whole
        time of a lease from then on. Answers whether it is the first time that the lease would have been
        given up."""
        given_up_at = self._renewed_at + self._lease * SURE
        first = not self._outlasted and at >= given_up_at
        self._outlasted = self._outlasted or first
        self._sure_from = max(self._sure_from, at)
        return first

    def lost(self) -> None:
        """The store has ended our lease."""
        self.id = None

    def left(self) -> float:
        """Seconds until the lease must be taken as ended, a fifth of it early: by then our handlers
        have to be stopped."""
        return self._sure_from + self._lease * SURE - self._clock.monotonic()
