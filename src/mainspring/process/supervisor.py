"""Several worker processes kept going by one that does nothing else: what died is started again, ever
more slowly if it keeps dying."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import Enum, auto
from typing import Protocol

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.telemetry.events import Telemetry, WorkerEnded, WorkerStarted

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=1)
HEALTHY_AFTER = timedelta(minutes=1)
"""A worker that lived so long had a good start: its end begins a new count."""
IDLE = timedelta(minutes=1)
ABORT_WITHIN = timedelta(seconds=15)
"""How long they get after a second stop, at most: somewhat longer than they give themselves."""
USAGE = 2
"""The exit code of a worker that cannot start until its code, call or settings are fixed."""


class WorkerProcess(Protocol):
    """A process that was started; `subprocess.Popen` is such."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


class EndStage(Enum):
    """How far the end is."""

    RUNNING = auto()
    DRAINING = auto()
    KILLED = auto()


class WorkerPlace:
    """One of the processes, and those that had its place before."""

    __slots__ = ("deaths", "due", "handle", "number", "since")

    def __init__(self, number: int) -> None:
        self.number = number
        self.handle: WorkerProcess | None = None
        self.since = 0.0
        self.due: float | None = 0.0
        """When to start one; None for never."""
        self.deaths = 0
        """In a row, each before it had lived long enough to be thought healthy."""


class Supervisor:
    """Starts, restarts and ends; every pass is one look at all places."""

    name = "supervisor"

    def __init__(
        self,
        count: int,
        start: Callable[[int], WorkerProcess],
        *,
        grace: timedelta,
        burst: bool,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
    ) -> None:
        self._places = [WorkerPlace(number + 1) for number in range(count)]
        self._start = start
        self._grace = grace
        self._burst = burst
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._stage = EndStage.RUNNING
        self._kill_at = 0.0
        self._proven = False
        self.code = 0
        """What to exit with."""

    @property
    def done(self) -> bool:
        """Whether no process is left and none will be started."""
        return all(place.handle is None and place.due is None for place in self._places)

    def stop(self) -> None:
        """Have all of them drain; a second call cuts their drains short. One that does not end in its time is
        killed."""
        now = self._clock.monotonic()
        if self._stage is EndStage.RUNNING:
            self._stage = EndStage.DRAINING
            self._kill_at = now + self._grace.total_seconds()
        else:
            self._kill_at = min(self._kill_at, now + ABORT_WITHIN.total_seconds())
        for place in self._places:
            place.due = None
            if place.handle is not None:
                place.handle.terminate()

    async def tick(self) -> timedelta:
        for place in self._places:
            self._bury(place)
        now = self._clock.monotonic()
        if self._stage is EndStage.DRAINING and now >= self._kill_at:
            self._kill()
        for place in self._places:
            if place.due is not None and now >= place.due:
                self._fill(place)
        return self._next_look(now)

    def _fill(self, place: WorkerPlace) -> None:
        place.due = None
        place.handle = self._start(place.number)
        place.since = self._clock.monotonic()
        self._telemetry.emit(WorkerStarted(number=place.number, pid=place.handle.pid))

    def _bury(self, place: WorkerPlace) -> None:
        code = None if place.handle is None else place.handle.poll()
        if place.handle is None or code is None:
            return
        pid, place.handle = place.handle.pid, None
        lived = self._clock.monotonic() - place.since
        again = None
        if self._stage is not EndStage.RUNNING:
            self.code = self.code or exit_code(code)
        elif self._burst and code == 0:
            self._proven = True
        elif code == USAGE and not self._proven and lived < HEALTHY_AFTER.total_seconds():
            # Not one of them ever ran: starting again cannot help.
            self.code = USAGE
            self._telemetry.emit(WorkerEnded(number=place.number, pid=pid, code=code, again_in=None))
            self.stop()
            return
        else:
            again = self._again_in(place, lived)
            place.due = self._clock.monotonic() + again.total_seconds()
        self._telemetry.emit(WorkerEnded(number=place.number, pid=pid, code=code, again_in=again))

    def _again_in(self, place: WorkerPlace, lived: float) -> timedelta:
        if lived >= HEALTHY_AFTER.total_seconds():
            place.deaths, self._proven = 0, True
        place.deaths += 1
        return pause_after(place.deaths, self._entropy.fraction())

    def _kill(self) -> None:
        self._stage = EndStage.KILLED
        for place in self._places:
            if place.handle is not None:
                place.handle.kill()

    def _next_look(self, now: float) -> timedelta:
        """Ends of processes wake us; the rest is known beforehand."""
        moments = [place.due for place in self._places if place.due is not None]
        if self._stage is EndStage.DRAINING:
            moments.append(self._kill_at)
        if not moments:
            return IDLE
        return min(IDLE, timedelta(seconds=max(0.0, min(moments) - now)))


def pause_after(deaths: int, fraction: float) -> timedelta:
    """How long a place stays empty after so many deaths in a row: doubling, at most a minute, half of it
    random so that workers which died together do not come back together."""
    longest = min(FIRST_PAUSE * 2.0 ** min(deaths - 1, 10), LONGEST_PAUSE)
    return longest * (0.5 + 0.5 * fraction)


def exit_code(status: int) -> int:
    """What a shell would say of a process that ended like this."""
    return status if status >= 0 else 128 - status
