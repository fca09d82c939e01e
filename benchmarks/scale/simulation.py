"""One shard set through a day: slots fall due, are fired into the table, and their jobs are run.

A fluid, not single jobs: there are billions. The primary is what is short. It fires at one rate if it does
nothing else and runs jobs at another; when both wait for it, each gets half of its time, or what the other
leaves. Slots are fired in order. A job is ready when it was fired and its place in the window has come, and
the one that was due first is run first.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.scale.arrivals import DAY, Due
from benchmarks.scale.curve import Curve

STEP = 0.2
"""Seconds between two looks at who needs the primary: no lateness is known better than that."""
ENDLESS = 2 * DAY
"""What is not done by then is not going to be."""


@dataclass(frozen=True)
class Primary:
    """What one primary can do in a second, with the schedulers and workers that belong to it."""

    fires: float
    """Slots written to the ledger and the queue, while it does nothing else."""
    runs: float
    """Jobs claimed and settled, while it does nothing else."""

    opens: float = 0.0
    """Seconds that a trigger takes, however few schedules it has."""

    def firing(self, due: Due) -> float:
        """Seconds it takes to fire them."""
        return due.slots / self.fires + due.triggers * self.opens

    def seconds(self, due: Due) -> float:
        """It is busy with these, from slot to history."""
        return self.firing(due) + due.slots / self.runs


class Overrun(Exception):
    """More falls due in a day than the primary can do in two."""


@dataclass
class Day:
    """What happened: how many so far, by the second."""

    due: Curve = field(default_factory=Curve)
    """Slots."""
    fired: Curve = field(default_factory=Curve)
    wanted: Curve = field(default_factory=Curve)
    """Jobs, by when they should start."""
    run: Curve = field(default_factory=Curve)
    depth: list[float] = field(default_factory=list)
    """The most jobs, in each minute, that should have started and had not ended."""
    busy: float = 0.0
    """Seconds of the primary."""


@dataclass
class _Group:
    """Slots of one second with one window, of which not all are fired."""

    due: Due
    rate: float
    """Slots of it that are fired in a second, while nothing else is done."""
    fired: float = 0.0
    wanted: float = 0.0
    ready: float = 0.0

    def place(self, now: float) -> float:
        """The part of their window that is over."""
        since = now - self.due.second
        return 1.0 if since >= self.due.window else since / self.due.window


class Simulation:
    """The state of one shard set, moved on step by step."""

    def __init__(self, arrivals: Sequence[Due], primary: Primary, step: float = STEP) -> None:
        self.day = Day()
        self._coming = deque(arrivals)
        self._primary = primary
        self._step = step
        self._per_minute = round(60 / step)
        self._number = 0
        self._unfired: deque[_Group] = deque()
        self._pending = 0.0
        """Seconds of the primary that firing will take."""
        self._ready = 0.0
        self._deepest = 0.0
        self._rate = 0.0
        """Jobs whose place comes in each second, of those that were all fired."""
        self._ends: dict[int, float] = defaultdict(float)
        """How much less that is from a step on."""
        self._before = 0.0
        """The rate as it was when a step began: who joined in it has been counted up to its end."""

    def run(self) -> Day:
        """The day, and as long after it as jobs are left."""
        while self._coming or self._at_work:
            if self._number * self._step > ENDLESS:
                raise Overrun
            if not self._at_work:
                self._skip(round(self._coming[0].second / self._step))
            self._arrive()
            self._deepest = max(self._deepest, self.day.wanted.total - self.day.run.total)
            self._number += 1
            self._work()
            self._spread()
            if self._number % self._per_minute == 0:
                self._end_minute()
        return self.day

    @property
    def _now(self) -> float:
        return self._number * self._step

    @property
    def _at_work(self) -> bool:
        return bool(self._unfired or self._ready > 0 or self._ends)

    def _end_minute(self) -> None:
        self.day.depth.append(self._deepest)
        self._deepest = 0.0

    def _skip(self, target: int) -> None:
        """Nobody needs anything until then."""
        for _ in range(target // self._per_minute - self._number // self._per_minute):
            self._end_minute()
        self._number = target
        for curve in (self.day.fired, self.day.wanted, self.day.run):
            curve.add(self._now, 0.0)

    def _arrive(self) -> None:
        while self._coming and round(self._coming[0].second / self._step) <= self._number:
            due = self._coming.popleft()
            seconds = self._primary.firing(due)
            self.day.due.jump(self._now, due.slots)
            self._unfired.append(_Group(due, due.slots / seconds))
            self._pending += seconds
            if not due.window:
                self.day.wanted.jump(self._now, due.slots)

    def _work(self) -> None:
        """Who gets how much of the primary in this step."""
        step, primary = self._step, self._primary
        to_fire, to_run = self._pending, self._ready / primary.runs
        firing = min(to_fire, max(step / 2, step - to_run))
        running = min(to_run, step - firing)
        ran = self._ready if running >= to_run else running * primary.runs
        self._ready -= ran
        self.day.run.add(self._now, ran)
        self._fire(firing)
        self.day.busy += firing + running

    def _fire(self, seconds: float) -> None:
        last, total = seconds >= self._pending, 0.0
        self._pending = 0.0 if last else self._pending - seconds
        while self._unfired and (last or seconds > 0):
            group = self._unfired[0]
            left = group.due.slots - group.fired
            here = left if last else min(seconds * group.rate, left)
            seconds -= here / group.rate
            group.fired += here
            total += here
            if not group.due.window:
                self._ready += here
            if here < left:
                break
            group.fired = group.due.slots
            self._unfired.popleft()
            if group.due.window:
                self._all_fired(group)
        self.day.fired.add(self._now, total)

    def _all_fired(self, group: _Group) -> None:
        """From here on its jobs get ready as their places come."""
        place = group.place(self._now)
        self.day.wanted.add(self._now, group.due.slots * place - group.wanted)
        self._ready += group.due.slots * place - group.ready
        end = round((group.due.second + group.due.window) / self._step)
        if end > self._number:
            self._rate += group.due.slots / group.due.window
            self._ends[end] += group.due.slots / group.due.window

    def _spread(self) -> None:
        more = 0.0
        for group in self._unfired:
            if group.due.window:
                # Who is fired first has nothing to do with whose place comes first.
                place = group.place(self._now)
                wanted, ready = group.due.slots * place, group.fired * place
                more += wanted - group.wanted
                self._ready += ready - group.ready
                group.wanted, group.ready = wanted, ready
        steady = self._before * self._step
        self.day.wanted.add(self._now, more + steady)
        self._ready += steady
        self._rate -= self._ends.pop(self._number, 0.0)
        if not self._ends:
            self._rate = 0.0
        self._before = self._rate


def simulate(arrivals: Sequence[Due], primary: Primary, step: float = STEP) -> Day:
    """A day of one shard set."""
    return Simulation(arrivals, primary, step).run()
