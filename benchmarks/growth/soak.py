"""Jobs in and out at one rate for a long time, plain and under a snapshot that somebody holds."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from benchmarks.bench import Bench, task_of
from benchmarks.growth.claiming import BATCH, CLAIMER, claimer, succeeded
from benchmarks.growth.curve import Curve, Point, spread
from benchmarks.growth.fill import QUEUE, TASK, admin, name_all, run
from benchmarks.growth.target import app as target
from mainspring.waiting import pause

WINDOW = 10.0
SLICE = 0.05
ARGUMENTS = {"tenant": "acme", "month": "2026-10"}
UNITS = {
    "claim p50": "ms",
    "claim p99": "ms",
    "look p99": "ms",
    "dead rows": "of jobs",
    "jobs table": "MB",
    "its indexes": "MB",
    "runs": "MB",
    "WAL": "bytes per job",
    "backlog": "jobs",
    "done": "jobs/s",
}
_STATE = """
SELECT (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'mainspring.jobs'::regclass),
       pg_table_size('mainspring.jobs'), pg_indexes_size('mainspring.jobs'),
       (SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
        WHERE inhparent = 'mainspring.runs'::regclass),
       pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')
"""


class Soak:
    """One producer and one consumer on the store's own calls, and a look every ten seconds. They are no
    worker processes: what is watched is the tables, and the claim as its caller sees it."""

    def __init__(self, bench: Bench, rate: int, lasts: timedelta) -> None:
        self._bench, self._rate = bench, rate
        self._ends = time.monotonic() + lasts.total_seconds()
        self._put = self._done = 0
        self._claims: list[float] = []
        """Milliseconds of claims that brought a hundred."""
        self._looks: list[float] = []
        """Of all others: they also look for what may lie behind them."""
        self.points: list[Point] = []

    @property
    def _over(self) -> bool:
        return time.monotonic() >= self._ends

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for part in (self._produce(), self._consume(), self._watch()):
                group.create_task(part)

    async def _produce(self) -> None:
        """By the clock, not by pauses: what was late is caught up."""
        async with self._bench.app(target) as app:
            noop, began = task_of(app, TASK), time.monotonic()
            while not self._over:
                owed = int((time.monotonic() - began) * self._rate) - self._put
                if owed > 0:
                    await app.aenqueue_many([noop.job(**ARGUMENTS) for _ in range(owed)])
                    self._put += owed
                await pause(timedelta(seconds=SLICE))

    async def _consume(self) -> None:
        async with claimer(self._bench) as store:
            while not self._over:
                began = time.perf_counter()
                claims = await store.queue.claim(CLAIMER, queues=[QUEUE], tasks=[TASK], limit=BATCH, at=None)
                took = (time.perf_counter() - began) * 1000
                (self._claims if len(claims) == BATCH else self._looks).append(took)
                if not claims:
                    await pause(timedelta(seconds=SLICE / 5))
                    continue
                self._done += len(claims) - len(await store.queue.settle(succeeded(claims), at=None))

    async def _watch(self) -> None:
        began = time.monotonic()
        [(*_, wal)] = await self._bench.rows(_STATE)
        done = 0
        while not self._over:
            at = time.monotonic()
            await pause(timedelta(seconds=min(WINDOW, max(self._ends - at, SLICE))))
            [(dead, table, indexes, runs, wal_now)] = await self._bench.rows(_STATE)
            claim, self._claims = spread(self._claims), []
            look, self._looks = spread(self._looks), []
            ended, passed = self._done - done, time.monotonic() - at
            self.points.append(
                {
                    "seconds": round(time.monotonic() - began, 1),
                    "claim p50": claim["p50"],
                    "claim p99": claim["p99"],
                    "look p99": look["p99"],
                    "dead rows": float(dead),
                    "jobs table": table / 1e6,
                    "its indexes": indexes / 1e6,
                    "runs": float(runs) / 1e6,
                    "WAL": float(wal_now - wal) / ended if ended else None,
                    "backlog": float(self._put - self._done),
                    "done": ended / passed,
                }
            )
            done, wal = self._done, wal_now


async def soak(bench: Bench, rate: int, lasts: timedelta, *, pinned: bool) -> Curve:
    """From empty tables. The snapshot, where there is one, is older than every row."""
    await run(bench, "TRUNCATE mainspring.jobs", "TRUNCATE mainspring.runs")
    await name_all(bench)
    how = "a snapshot held throughout" if pinned else "autovacuum on"
    holder = await admin(bench)
    try:
        if pinned:
            await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            await holder.fetchval("SELECT count(*) FROM mainspring.priority_levels")
        soaked = Soak(bench, rate, lasts)
        await soaked.run()
    finally:
        await holder.close()
    return Curve(f"{rate:,} jobs/s in and out, {how}", "seconds", UNITS, "claim p99", soaked.points)
