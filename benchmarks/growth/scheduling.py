"""Schedulers against the number of schedules: at rest, at a tick of a thousand slots, and their memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from statistics import median

from benchmarks.bench import Bench
from benchmarks.growth.curve import Curve, spread
from benchmarks.growth.fill import run
from benchmarks.growth.processes import resident_mb, started
from benchmarks.growth.target import app as target
from benchmarks.measures import one_of_a_burst
from mainspring import Mainspring
from mainspring.scheduler.scheduler import Scheduler

HOUR = timedelta(hours=1)
DUE = 1000
PASSES, TICKS = 50, 5
UNITS = {
    "rest p50": "ms",
    "rest p99": "ms",
    "tick": "ms for 1,000 slots",
    "memory": "MB",
    "of schedules": "MB per million",
}


async def against_schedules(bench: Bench, sizes: Sequence[int]) -> Curve:
    """Most schedules are due in an hour; a thousand of another expression are due now, five times."""
    curve = Curve("A scheduler's pass against the number of schedules", "schedules", UNITS, "tick")
    least: float | None = None
    for size in sizes:
        await _none(bench)
        async with bench.app(target) as app:
            store = await app._store()
            now = await store.now(at=None)
            await _put(bench, app, "rest", size - DUE * TICKS, now + HOUR, 2 * HOUR)
            scheduler = Scheduler(store, app._clock, app._telemetry, poll=timedelta(seconds=1), chunk=2000)
            await scheduler.tick()
            rest = []
            for _ in range(PASSES):
                began = time.perf_counter()
                await scheduler.tick()
                rest.append((time.perf_counter() - began) * 1000)
            ticks = [await _tick(bench, app, scheduler, turn, now) for turn in range(TICKS)]
        memory = await _memory(bench)
        least = memory if least is None else least
        over = None if memory is None or least is None or size == sizes[0] else memory - least
        passes = spread(rest)
        curve.points.append(
            {
                "schedules": size,
                "rest p50": passes["p50"],
                "rest p99": passes["p99"],
                "tick": median(ticks),
                "memory": memory,
                "of schedules": None if over is None else over * 1e6 / (size - sizes[0]),
            }
        )
    await _none(bench)
    return curve


async def _tick(bench: Bench, app: Mainspring, scheduler: Scheduler, turn: int, now: datetime) -> float:
    """Milliseconds until a thousand more, which are due, have their slots."""
    await _put(bench, app, f"due-{turn}", DUE, now, (3 + turn) * HOUR)
    before = await bench.count("slots")
    began = time.perf_counter()
    while await bench.count("slots") - before < DUE:
        await scheduler.tick()
    return (time.perf_counter() - began) * 1000


async def _put(
    bench: Bench, app: Mainspring, name: str, count: int, first: datetime, period: timedelta
) -> None:
    """So many on one trigger of their own: its period tells them from others."""
    store = await app._store()
    await store.schedules.put([one_of_a_burst(f"{name}-0", period, first)], at=first - 2 * HOUR)
    await bench.copy_schedule(f"{name}-0", count - 1)
    await run(bench, "VACUUM ANALYZE mainspring.schedules")


async def _memory(bench: Bench) -> float | None:
    """The most that a scheduler process had when it has looked once."""
    async with started(bench, "scheduler", 1) as [process]:
        return resident_mb(process.pid, peak=True)


async def _none(bench: Bench) -> None:
    await run(bench, "TRUNCATE mainspring.schedules CASCADE", "TRUNCATE mainspring.slots")
    await run(bench, "DELETE FROM mainspring.specs", "TRUNCATE mainspring.jobs")
