"""How soon the jobs of a killed worker run elsewhere, and how many sessions each process has."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.bench import Bench, task_of
from benchmarks.growth.curve import Curve
from benchmarks.growth.fill import run
from benchmarks.growth.processes import started
from benchmarks.growth.target import app as target

LEASE = 3.0
UNITS = {"recovered": "s after kill -9", "of the lease": "lease is 3 s", "sessions": "per process"}
_HELD = "SELECT count(*) FROM mainspring.jobs WHERE fence >= {} AND worker_id <> 0"
_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def against_held(bench: Bench, sizes: Sequence[int]) -> Curve:
    """One of two workers is killed with so many jobs in hand, which take longer than it lives; then until
    each of them has been claimed by the other."""
    curve = Curve("Recovery of a killed worker's jobs", "jobs in hand", UNITS, "recovered")
    beats = ("--lease", f"{LEASE:.0f}s", "--heartbeat", "1s", "--shutdown-timeout", "1s")
    for size in sizes:
        await run(bench, "TRUNCATE mainspring.jobs", "TRUNCATE mainspring.processes CASCADE")
        options = ("--concurrency", str(size), *beats)
        async with bench.app(target) as app, started(bench, "worker", 1, *options) as [first]:
            nap = task_of(app, "nap")
            await app.aenqueue_many([nap.job() for _ in range(size)])

            async def in_hand(fence: int, size: int = size) -> bool:
                [(found,)] = await bench.rows(_HELD.format(fence))
                return bool(found >= size)

            await bench.until(lambda: in_hand(1), "the first to have all jobs")
            async with started(bench, "worker", 1, *options, members=2):
                [(sessions,)] = await bench.rows(_SESSIONS)
                began = time.perf_counter()
                first.kill()
                await bench.until(lambda: in_hand(2), "the second to have all jobs")
                took = time.perf_counter() - began
                await run(bench, "TRUNCATE mainspring.jobs")
        curve.points.append(
            {
                "jobs in hand": size,
                "recovered": took,
                "of the lease": took / LEASE,
                "sessions": (sessions - 1) / 2,
            }
        )
    return curve
