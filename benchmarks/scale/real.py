"""A PostgreSQL that is full of schedules, and what a scheduler does with it."""

from __future__ import annotations

import asyncio
import resource
import statistics
import sys
import time
from datetime import timedelta

import asyncpg
import msgspec

from benchmarks.bench import Bench
from benchmarks.measures import ARGUMENTS
from benchmarks.scale.arrivals import START
from benchmarks.scale.mixture import Burst, mixture
from benchmarks.scale.processor import taken
from mainspring import Mainspring
from mainspring.clock import Clock
from mainspring.model.schedule import NewSchedule
from mainspring.process.serve import aserve
from mainspring.scheduler.scheduler import Scheduler
from mainspring.store.opener import open_store
from mainspring.telemetry.events import Telemetry
from mainspring.testing.clock import ManualClock
from mainspring.triggers.cron import Cron
from tests.support.postgres import PostgresServer

CHUNK = 2000
PASSES = 200
TRIGGERS = 400
SMALL = 2_000
"""Jobs of a drain whose time is taken off that of a larger one: a start and an end are not what is asked."""
_BEFORE = timedelta(seconds=90)

Figures = dict[str, float]


def measured(schedules: int, jobs: int) -> Figures:
    """Every figure, on a durable server of its own."""
    with PostgresServer(fsync=True, settings={"shared_buffers": "1GB", "max_wal_size": "8GB"}) as server:
        return asyncio.run(_measured(server, schedules, jobs))


async def _measured(server: PostgresServer, schedules: int, jobs: int) -> Figures:
    bench = Bench("postgresql", server.url())
    clock = ManualClock(START - _BEFORE)
    store = open_store(bench.url, clock=clock)
    await store.migrate()
    await store.close()
    figures = await _drained(server, bench, jobs)
    _tell("drained", figures)
    figures |= await _opened(bench)
    figures |= await _rested(bench, clock, "pass without schedules")
    bursts = mixture(schedules)
    figures |= {"schedules": schedules, "triggers": len(bursts)}
    figures |= await _filled(bench, bursts, clock)
    _tell("filled", figures)
    figures |= await _rested(bench, clock, "pass at rest")
    for name, schedulers, moment in (
        ("minute", 1, START - timedelta(minutes=1)),
        ("burst", 1, START),
        ("two schedulers", 2, START + timedelta(hours=1)),
    ):
        await bench.execute("TRUNCATE mainspring.jobs")
        await bench.execute("CHECKPOINT")
        clock.move_to(moment)
        figures |= await _fired(server, bench, clock, schedulers, name)
        _tell(name, figures)
    figures["memory of a process that does all this, MB"] = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )
    return figures


async def _drained(server: PostgresServer, bench: Bench, jobs: int) -> Figures:
    """A worker in this process runs jobs that are there already."""
    samples = []
    for count in (1, SMALL, SMALL + jobs):
        await bench.empty()
        app = Mainspring(bench.url)
        app._configure({"worker.concurrency": 200})
        app.task(name="noop")(_noop)
        async with app:
            task = app._registry.get("noop")
            await app.aenqueue_many(task.job(**ARGUMENTS) for _ in range(count))
            log, cpu, began = await _log(bench), taken(_pid(server)), time.perf_counter()
            await aserve(app, scheduler=False, burst=True)
        wall = time.perf_counter() - began
        samples.append((wall, taken(_pid(server)) - cpu, await _log(bench) - log))
        assert await bench.count("runs") == count
    wall, cpu, log = ((large - small) / jobs for small, large in zip(samples[1], samples[2], strict=True))
    return {"run, jobs/s": 1 / wall, "run, server CPU µs": cpu * 1e6, "run, WAL bytes": log}


async def _noop(tenant: str, month: str) -> None:
    """As little as a handler can do."""


async def _opened(bench: Bench) -> Figures:
    """What a trigger costs that has one schedule: a fire of its own."""
    clock = ManualClock(START - _BEFORE)
    bursts = [Burst(f"{n % 60} {n % 24} 1 3 {n // 120}", "UTC", 1, 0) for n in range(TRIGGERS)]
    store = open_store(bench.url, clock=clock)
    try:
        news = [_schedule(number, burst, clock) for number, burst in enumerate(bursts)]
        await store.schedules.put(
            [msgspec.structs.replace(each, next_at=START, following_at=START + _BEFORE) for each in news],
            at=clock.now(),
        )
        clock.move_to(START)
        began = time.perf_counter()
        await _until_done(_scheduler(store, clock))
        took = time.perf_counter() - began
    finally:
        await store.close()
    assert await bench.count("slots") == TRIGGERS
    for table in ("schedules", "specs", "jobs", "slots"):
        await bench.execute(f"DELETE FROM mainspring.{table}")
    return {"trigger, ms": took / TRIGGERS * 1e3}


async def _filled(bench: Bench, bursts: list[Burst], clock: Clock) -> Figures:
    """One schedule of each trigger by the store, all others beside them by one statement."""
    began = time.perf_counter()
    store = open_store(bench.url, clock=clock)
    now = clock.now()
    await store.schedules.put(
        [_schedule(number, burst, clock) for number, burst in enumerate(bursts)], at=now
    )
    await store.close()
    connection = await asyncpg.connect(bench.url)
    try:
        await connection.execute("CREATE TEMP TABLE bursts (name text, more int)")
        await connection.copy_records_to_table(
            "bursts", records=[(f"{n}-0", burst.schedules - 1) for n, burst in enumerate(bursts)]
        )
        same = "spec_id, task_id, queue_id, priority, max_attempts, payload, misfire, catch_up"
        same += ", active_from, overlap"
        # Not trigger by trigger: neighbours in the table have nothing to do with each other.
        await connection.execute(
            f"INSERT INTO mainspring.schedules (name, {same}) "
            f"SELECT bursts.name || '-' || n, {same} FROM mainspring.schedules JOIN bursts USING (name), "
            "generate_series(1, more) n ORDER BY hashtext(bursts.name || n)"
        )
        await connection.execute("VACUUM ANALYZE mainspring.schedules")
    finally:
        await connection.close()
    took = time.perf_counter() - began
    [(heap, indexes, specs)] = await bench.rows(
        "SELECT pg_table_size('mainspring.schedules'), pg_indexes_size('mainspring.schedules'), "
        "pg_total_relation_size('mainspring.specs')"
    )
    count = await bench.count("schedules")
    return {
        "fill, s": took,
        "schedule, table bytes": heap / count,
        "schedule, index bytes": indexes / count,
        "triggers, MB in all": specs / 1e6,
    }


def _schedule(number: int, burst: Burst, clock: Clock) -> NewSchedule:
    trigger = Cron(burst.cron, burst.tz)
    following = trigger.next_after(clock.now())
    assert following is not None
    return NewSchedule(
        name=f"{number}-0",
        task="noop",
        trigger=trigger.encode(),
        payload=b'{"tenant":"acme","month":"2026-10"}',
        next_at=following,
        following_at=trigger.next_after(following),
    )


async def _rested(bench: Bench, clock: Clock, name: str) -> Figures:
    """Passes while nothing is due."""
    store = open_store(bench.url, clock=clock)
    try:
        scheduler = _scheduler(store, clock)
        await scheduler.tick()
        times = []
        for _ in range(PASSES):
            began = time.perf_counter()
            await scheduler.tick()
            times.append(time.perf_counter() - began)
    finally:
        await store.close()
    assert await bench.count("slots") == 0
    times.sort()
    return {
        f"{name} p50, ms": statistics.median(times) * 1e3,
        f"{name} p99, ms": times[len(times) * 99 // 100] * 1e3,
    }


async def _fired(server: PostgresServer, bench: Bench, clock: Clock, schedulers: int, name: str) -> Figures:
    """From the slot's moment to the last ledger row."""
    slots = await bench.count("slots")
    [(due,)] = await bench.rows(
        f"SELECT count(*) FROM mainspring.specs WHERE next_at <= '{clock.now().isoformat()}'"
    )
    stores = [open_store(bench.url, clock=clock) for _ in range(schedulers)]
    try:
        ready = [_scheduler(store, clock) for store in stores]
        for store in stores:
            await store.now(at=None)
        log, cpu, began = await _log(bench), taken(_pid(server)), time.perf_counter()
        await asyncio.gather(*(_until_done(each) for each in ready))
        took = time.perf_counter() - began
        cpu, log = taken(_pid(server)) - cpu, await _log(bench) - log
    finally:
        for store in stores:
            await store.close()
    fired = await bench.count("slots") - slots
    [(left,)] = await bench.rows("SELECT count(*) FROM mainspring.firings")
    assert left == 0, f"{left} fires were left open"
    return {
        f"{name}: slots": fired,
        f"{name}: triggers": due,
        f"{name}, s": took,
        f"{name}, slots/s": fired / took,
        f"{name}, server CPU µs": cpu / fired * 1e6,
        f"{name}, WAL bytes": log / fired,
    }


async def _until_done(scheduler: Scheduler) -> None:
    """Another pass as long as it asks for one at once."""
    while not await scheduler.tick():
        pass


def _scheduler(store: object, clock: Clock) -> Scheduler:
    return Scheduler(store, clock, Telemetry(), poll=timedelta(seconds=1), chunk=CHUNK)  # type: ignore[arg-type]


async def _log(bench: Bench) -> float:
    [(position,)] = await bench.rows("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
    return float(position)


def _pid(server: PostgresServer) -> int:
    assert server.pid is not None
    return server.pid


def _tell(step: str, figures: Figures) -> None:
    print(f"  {step}: {len(figures)} figures", file=sys.stderr)
