"""Claims and settlements of a hundred jobs against the backlog and against the history."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from benchmarks.bench import Bench
from benchmarks.growth.curve import Curve, Point, spread
from benchmarks.growth.fill import QUEUE, TASK, backlog, history
from mainspring.clock import SystemClock
from mainspring.model.job import Claim
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Settlement, Verdict
from mainspring.store.opener import open_store
from mainspring.store.store import Store

BATCH = 100
CLAIMER = 4711
UNITS = {
    "claim p50": "ms",
    "claim p99": "ms",
    "settle p50": "ms",
    "drain": "µs of wall time per job",
}


@asynccontextmanager
async def claimer(bench: Bench) -> AsyncIterator[Store]:
    """A store with a member that may claim. Its lease outlasts every measure."""
    store = open_store(bench.url, clock=SystemClock())
    member = NewProcess(id=CLAIMER, role=Role.WORKER, name="growth", queues=(QUEUE,), tasks=(TASK,))
    try:
        await store.processes.join(member, lease=timedelta(days=1), at=None)
        yield store
        await store.processes.leave(CLAIMER, clean=True, at=None)
    finally:
        await store.close()


def succeeded(claims: Sequence[Claim]) -> list[Settlement]:
    """All of them done, in no time."""
    return [
        Settlement(
            job_id=claim.job_id,
            worker_id=CLAIMER,
            fence=claim.fence,
            verdict=Verdict.SUCCEEDED,
            took=timedelta(),
        )
        for claim in claims
    ]


async def turns(store: Store, count: int) -> Point:
    """So many claims of a hundred by the store's own call, each settled before the next."""
    claimed, settled, jobs = [], [], 0
    for _ in range(count):
        began = time.perf_counter()
        claims = await store.queue.claim(CLAIMER, queues=[QUEUE], tasks=[TASK], limit=BATCH, at=None)
        claimed.append((time.perf_counter() - began) * 1000)
        if not claims:
            break
        done = succeeded(claims)
        began = time.perf_counter()
        refused = await store.queue.settle(done, at=None)
        settled.append((time.perf_counter() - began) * 1000)
        if refused:
            raise RuntimeError(f"{len(refused)} settlements were refused: the figures would be of nothing")
        jobs += len(claims)
    claim, settle = spread(claimed), spread(settled)
    return {
        "claim p50": claim["p50"],
        "claim p99": claim["p99"],
        "settle p50": settle["p50"],
        "drain": (sum(claimed) + sum(settled)) * 1000 / jobs if jobs else None,
    }


async def against_backlog(bench: Bench, sizes: Sequence[int], claims: int) -> Curve:
    curve = Curve("A hundred jobs claimed and settled, against the backlog", "jobs", UNITS, "claim p50")
    for size in sizes:
        await backlog(bench, size)
        async with claimer(bench) as store:
            await turns(store, 5)  # statements are prepared, and hints are there
            curve.points.append({"jobs": size, **await turns(store, min(claims, size // BATCH - 5))})
    return curve


async def against_history(bench: Bench, sizes: Sequence[int], claims: int) -> Curve:
    curve = Curve("A hundred jobs claimed and settled, against the history", "runs", UNITS, "drain")
    for size in sizes:
        await history(bench, size)
        await backlog(bench, (claims + 5) * BATCH)
        async with claimer(bench) as store:
            await turns(store, 5)
            curve.points.append({"runs": size, **await turns(store, claims)})
    await history(bench, 0)
    return curve
