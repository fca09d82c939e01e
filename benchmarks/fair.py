"""What a fair queue gives to those who do not flood it, and what it costs."""

from __future__ import annotations

import json
import time
from datetime import timedelta

from benchmarks.bench import Bench, task_of
from benchmarks.fair_target import app as target
from benchmarks.figure import percentile
from benchmarks.measures import ARGUMENTS, Figures, drained
from mainspring import Mainspring
from mainspring.waiting import pause

EVERY = timedelta(milliseconds=50)
VISITS = 100


async def fair(bench: Bench, count: int, concurrency: int) -> Figures:
    """One tenant puts `count` jobs in at once; another one every 50 ms, 100 in all. Milliseconds from the
    other's call of enqueue to the handler's first line, and the rate at which the flood is done, beside
    that of the same flood in a plain queue."""
    plain = await drained(bench, "noop", count, 2, concurrency)
    await bench.empty()
    async with (
        bench.workers(2, concurrency, "benchmarks.fair_target:app"),
        bench.app(target) as app,
    ):
        noop = task_of(app, "noop")
        await app.aenqueue_many(noop.job(**ARGUMENTS) for _ in range(count))
        began = await (await app._store()).now(at=None)
        visits = await _visits(app)

        await bench.until_done(count + VISITS)
        rate = count / (await bench.last_end(before=visits[0]) - began).total_seconds()
        waits = sorted([await _wait(app, job_id) for job_id in visits])
    await bench.empty()
    return {
        "start delay beside a flood, fair, p50, ms": percentile(waits, 50),
        "start delay beside a flood, fair, p99, ms": percentile(waits, 99),
        f"drain {count:,} of one tenant, plain, jobs/s": plain,
        f"drain {count:,} of one tenant, fair, jobs/s": rate,
        "fair by plain": rate / plain,
    }


async def _visits(app: Mainspring) -> list[int]:
    """One every 50 ms by the clock, however long each takes to be put in."""
    stamp, ids, first = task_of(app, "stamp"), [], time.monotonic()
    for number in range(VISITS):
        due = first + number * EVERY.total_seconds()
        await pause(timedelta(seconds=max(due - time.monotonic(), 0)))
        ids.append((await stamp.aenqueue("other", time.monotonic_ns())).id)
    return ids


async def _wait(app: Mainspring, job_id: int) -> float:
    found = await (await app._store()).jobs.get(job_id, at=None)
    assert found is not None
    assert found.result is not None
    return float(json.loads(found.result)) / 1e6
