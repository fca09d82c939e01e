"""How much of the machine others took meanwhile, and how fast it was: a figure from a crowded machine shall
say so. Neighbours of a virtual machine are seen by its pace alone."""

from __future__ import annotations

import os
import time
from pathlib import Path

from benchmarks.processes import TICKS, cpu_seconds

LAPS = 200_000


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


def pace_ms() -> float:
    """How long one core takes for the same arithmetic now."""
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
