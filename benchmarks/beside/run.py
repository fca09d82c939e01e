"""One run: how large, how long, and what was found so far."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from benchmarks.beside.session import Failed, Unsupported
from benchmarks.environment import Missing
from benchmarks.figure import Book, Measured
from benchmarks.known import System
from benchmarks.noise import Lulls, Noise
from tests.support.postgres import ServerUnavailable

ONE_BY_ONE = "enqueue {:,} one by one, jobs/s"
TROUBLE = (Failed, Missing, ServerUnavailable, OSError, KeyError, asyncpg.PostgresError)
"""What a peer, its environment or its server may come to; it is told, and the run goes on."""

IN_BULK = "enqueue {:,} in bulk, jobs/s"


@dataclass(frozen=True)
class Size:
    """Of the workloads. A scaled one is for trying the harness: its figures mean nothing."""

    one_by_one: int = 2000
    drain: int = 20_000
    large: int = 200_000
    largest: int = 1_000_000
    rates: tuple[int, ...] = (250, 1000, 4000, 15_000, 25_000)
    seconds: float = 8.0
    """Of feeding at each rate."""
    pickups: int = 100
    schedules: tuple[int, ...] = (1000, 10_000)
    doubles: int = 100
    """Schedules that two schedulers look after."""
    held: int = 10
    watch: float = 60.0
    """Seconds for jobs of a killed worker to run again."""
    cap: float = 8.0
    """Seconds of draining, after which the rate is that of what was done."""
    fill: float = 6.0
    """Seconds that storing one by one may take before a drain: who is slower at it gets fewer jobs."""

    def scaled(self, scale: float) -> Size:
        def small(count: int, least: int) -> int:
            return max(round(count * scale), least)

        if scale == 1:
            return self
        return Size(
            one_by_one=small(self.one_by_one, 20),
            drain=small(self.drain, 100),
            large=small(self.large, 200),
            largest=small(self.largest, 1000),
            seconds=max(self.seconds * scale, 1.0),
            pickups=small(self.pickups, 10),
            schedules=tuple(small(count, 10) for count in self.schedules),
            doubles=small(self.doubles, 10),
            held=self.held,
            watch=self.watch,
            cap=self.cap,
            fill=self.fill,
        )


@dataclass
class Run:
    """What every workload is given."""

    size: Size
    about: Mapping[str, Mapping[str, Any]]
    """What each system says of itself."""
    all: bool = False
    """The largest drains, too."""
    lulls: Lulls = field(default_factory=Lulls)
    """When to begin."""
    book: Book = field(default_factory=Book)

    def measure(self, system: System, workload: str, body: Callable[[], tuple[Measured, str]]) -> None:
        """One figure or several, and what must be said of them; a failure is an answer, too, and ends nothing
        but this."""
        noise = Noise()
        try:
            measured, note = body()
        except Unsupported as why:
            self.book.failed(system.key, workload, f"has none: {why}")
        except TROUBLE as why:
            self.failed(system, workload, why)
        else:
            self.tell(system, workload, measured, note, others=noise.others, pace=noise.pace)

    def tell(
        self,
        system: System,
        workload: str,
        measured: Measured,
        note: str = "",
        *,
        others: float | None = None,
        pace: float | None = None,
    ) -> None:
        """Figures that are there."""
        self.book.add(system.key, workload, measured, others=others, pace=pace, note=note)
        told = ", ".join(f"{name} {value:,.4g}" for name, value in measured.items())
        print(f"  {system.key}: {told}{note and f' ({note})'}", file=sys.stderr)

    def failed(self, system: System, workload: str, why: Exception) -> None:
        told = str(why) or type(why).__name__
        self.book.failed(system.key, workload, f"failed: {told}")
        print(f"  {system.key}, {workload}: {told}", file=sys.stderr)

    def has(self, system: System, name: str, value: str) -> bool:
        return value in self.about[system.key].get(name, ())

    def bulk(self, system: System) -> bool:
        return bool(self.about[system.key].get("bulk"))

    def affordable(self, system: System, count: int) -> int:
        """So many jobs, or as many as it stores in the time there is for that."""
        if self.bulk(system):
            return count
        rate = self.book.value(system.key, ONE_BY_ONE.format(self.size.one_by_one))
        return count if rate is None else min(count, max(int(rate * self.size.fill) // 100 * 100, 100))
