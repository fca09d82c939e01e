"""Whether the loops of a process make progress: that is what being alive means."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.model.value import Value

SLOW = {"pruner": timedelta(minutes=5), "scheduler": timedelta(minutes=2)}
"""Passes that may take their time: what is old is dropped day by day, and a burst of schedules is fired chunk
by chunk."""


class LateLoop(Value, frozen=True, kw_only=True):
    """A loop that should have made a pass by now."""

    loop: str
    by: timedelta
    in_pass: bool
    """Whether it hangs in a pass, or was to begin one and did not: the event loop is held up."""


class LoopMark:
    """One loop's own word. Written on its thread, read on any."""

    __slots__ = ("_clock", "_takes", "at", "ended", "in_pass", "loop", "next_at", "passes")

    def __init__(self, loop: str, clock: Clock) -> None:
        self.loop, self._clock = loop, clock
        self._takes = SLOW.get(loop, timedelta()).total_seconds()
        self.passes = 0
        self.in_pass = self.ended = False
        self.at = self.next_at = clock.monotonic()

    def begins(self) -> None:
        """A pass begins, and should not take long."""
        self.at = self._clock.monotonic()
        self.next_at = self.at + self._takes
        self.in_pass = True

    def rests(self, rest: timedelta) -> None:
        """It has ended, well or not; the next is due after this rest."""
        self.at = self._clock.monotonic()
        self.next_at = self.at + rest.total_seconds()
        self.passes += 1
        self.in_pass = False

    def ends(self) -> None:
        """There will be no other."""
        self.ended = True


class LoopProgress:
    """The marks of all loops of one process."""

    def __init__(self, clock: Clock, stuck_after: timedelta) -> None:
        self._clock = clock
        self._stuck_after = stuck_after.total_seconds()
        self._marks: list[LoopMark] = []

    def mark(self, loop: str) -> LoopMark:
        """For a loop that is about to begin."""
        mark = LoopMark(loop, self._clock)
        self._marks.append(mark)
        return mark

    def late(self) -> list[LateLoop]:
        """Those that are stuck. Safe from any thread."""
        now = self._clock.monotonic()
        return [
            LateLoop(loop=mark.loop, by=timedelta(seconds=now - mark.next_at), in_pass=mark.in_pass)
            for mark in list(self._marks)
            if not mark.ended and now - mark.next_at > self._stuck_after
        ]

    def ages(self) -> dict[str, float]:
        """Seconds since each loop was last heard of; of several with one name, the oldest."""
        now, ages = self._clock.monotonic(), dict[str, float]()
        for mark in list(self._marks):
            if not mark.ended:
                ages[mark.loop] = max(now - mark.at, ages.get(mark.loop, 0.0))
        return ages
