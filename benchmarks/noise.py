"""How much of the machine others took meanwhile, and how fast it was: a figure from a crowded machine shall
say so. Neighbours of a virtual machine are seen by its pace alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.processes import TICKS, cpu_seconds

LAPS = 200_000
NEAR = 1.15
"""How many times as long as at its best the loop may take in a lull."""
SAMPLES, APART = 40, 0.1


class Noise:
    """Begins when it is made. Only where /proc tells; elsewhere `others` stays None."""

    def __init__(self) -> None:
        self._pace = pace_ms()
        self._began = _reading()

    @property
    def others(self) -> float | None:
        """The share of all cores that went to processes which are neither ours nor our descendants."""
        now = _reading()
        if now is None or self._began is None:
            return None
        whole, busy, own = (late - early for late, early in zip(now, self._began, strict=True))
        return min(max((busy - own) / whole, 0.0), 1.0) if whole else None

    @property
    def pace(self) -> float:
        """Milliseconds of a fixed loop, by the mean of before and now."""
        return (self._pace + pace_ms()) / 2


class Lulls:
    """Moments in which neighbours leave the machine to us: it is about as fast as it was at its best. What is
    measured begins in one, whoever's it is; with no patience, at once."""

    def __init__(self, patience: float = 0.0) -> None:
        self._patience = patience
        self._best = min(self._sample() for _ in range(SAMPLES)) if patience else 0.0

    def wait(self) -> None:
        """Until there is one, or it has taken too long."""
        give_up = time.monotonic() + self._patience
        while time.monotonic() < give_up:
            pace = self._sample()
            self._best = min(self._best, pace)
            if pace <= NEAR * self._best:
                return

    def _sample(self) -> float:
        time.sleep(APART)
        return pace_ms()


def pace_ms() -> float:
    """How long the slowest core takes for the same arithmetic now."""
    if not hasattr(os, "sched_setaffinity"):
        return _loop_ms()
    cores, paces = os.sched_getaffinity(0), []
    try:
        for core in cores:
            os.sched_setaffinity(0, {core})
            paces.append(_loop_ms())
    finally:
        os.sched_setaffinity(0, cores)
    return max(paces)


def _loop_ms() -> float:
    began, total = time.perf_counter(), 0
    for lap in range(LAPS):
        total += lap * lap % 7
    return (time.perf_counter() - began) * 1000


def _reading() -> tuple[float, float, float] | None:
    """Seconds of all cores, those not idle, and our own."""
    try:
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except FileNotFoundError:
        return None
    idle = times[3] + times[4]
    return sum(times) / TICKS, (sum(times) - idle) / TICKS, cpu_seconds([os.getpid()])
