"""The measures themselves: each takes a database and answers figures with their units."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

from benchmarks.bench import Bench, task_of
from benchmarks.figure import percentile
from mainspring import Mainspring
from mainspring.model.job import JobState
from mainspring.model.schedule import NewSchedule, Overlap
from mainspring.scheduler.scheduler import Scheduler
from mainspring.triggers.intervals import Every
from mainspring.waiting import pause

HOUR = timedelta(hours=1)
PREPARED_WITHIN = timedelta(seconds=4)
ARGUMENTS = {"tenant": "acme", "month": "2026-10"}
TURN = 50
CHUNK = 100_000
"""Jobs of one call when many are put in for something else to be measured."""

Figures = dict[str, float]


async def enqueue(bench: Bench, count: int) -> Figures:
    """Jobs stored per second, durable: in one call, and one at a time by one client; that beside a bare
    insert of one row on a connection of the same kind, in turns, so that both meet the same machine."""
    one_by_one = max(count // 10, 50)
    turns = max(one_by_one // TURN, 1)
    ours = bare = 0.0
    await bench.empty()
    async with bench.app() as app, bench.bare() as insert:
        noop = task_of(app, "noop")
        await noop.aenqueue(**ARGUMENTS)
        await insert()
        for _ in range(turns):
            ours += await _seconds(lambda: noop.aenqueue(**ARGUMENTS), TURN)
            bare += await _seconds(insert, TURN)
        assert await bench.count("jobs") == turns * TURN + 1
        await bench.empty()
        began = time.perf_counter()
        await app.aenqueue_many(noop.job(**ARGUMENTS) for _ in range(count))
        bulk = count / (time.perf_counter() - began)
    assert await bench.count("jobs") == count
    await bench.empty()
    return {
        f"enqueue {one_by_one:,} one by one, jobs/s": turns * TURN / ours,
        "bare insert of one row, rows/s": turns * TURN / bare,
        "enqueue one by one, share of a bare insert's rate": bare / ours,
        f"enqueue {count:,} in bulk, jobs/s": bulk,
    }


async def _seconds(call: Callable[[], Awaitable[object]], times: int) -> float:
    began = time.perf_counter()
    for _ in range(times):
        await call()
    return time.perf_counter() - began


async def drain(bench: Bench, count: int, processes: int, concurrency: int) -> Figures:
    """Jobs settled per second by idle workers."""
    figure = await drained(bench, "noop", count, processes, concurrency)
    return {name_of_drain(count, processes): figure}


async def handlers(bench: Bench, count: int, concurrency: int) -> Figures:
    """The same for plain functions, which run in threads, and for a task that runs in the four children of
    one worker, their start included."""
    return {
        f"drain {count:,} with sync handlers, jobs/s": await drained(
            bench, "sync_noop", count, 1, concurrency
        ),
        f"drain {count // 4:,} with isolated handlers, jobs/s": await drained(
            bench, "isolated_noop", count // 4, 1, concurrency
        ),
    }


async def unsynced(bench: Bench, count: int, concurrency: int) -> Figures:
    """What fsync costs on SQLite: the same drain with `synchronous=NORMAL` for every transaction, which the
    store itself has for claims only. A power cut may then undo the last settlements; nothing else would."""
    if bench.engine != "sqlite":
        return {}
    figure = await drained(bench, "noop", count, 1, concurrency, target="benchmarks.unsynced_target:app")
    return {name_of_drain(count, 1).replace(", jobs/s", ", synchronous=NORMAL, jobs/s"): figure}


def name_of_drain(count: int, processes: int) -> str:
    return f"drain {count:,} with {processes} worker {'process' if processes == 1 else 'processes'}, jobs/s"


async def drained(
    bench: Bench,
    task: str,
    count: int,
    processes: int,
    concurrency: int,
    target: str = "benchmarks.target:app",
) -> float:
    """From the moment at which a queue of `count` jobs is opened to idle workers until the last one's history
    row. Both moments are the database's, and nobody counts meanwhile."""
    await bench.empty()
    async with bench.app() as app:
        store = await app._store()
        await store.queues.pause("default", author="benchmark", note=None, at=None)
        noop = task_of(app, task)
        for first in range(0, count, CHUNK):
            await app.aenqueue_many(noop.job(**ARGUMENTS) for _ in range(min(CHUNK, count - first)))
        await bench.analyze()
        async with bench.workers(processes, concurrency, target):
            began = await store.now(at=None)
            await store.queues.resume("default")
            await bench.until_done(count)
            took = await bench.last_end() - began
    return float(count / took.total_seconds())


async def pickup(bench: Bench, count: int) -> Figures:
    """Milliseconds from the call of enqueue to the handler's first line, on an idle worker."""
    await bench.empty()
    waits = []
    async with bench.workers(1, 32), bench.app() as app:
        stamp = task_of(app, "stamp")
        store = await app._store()
        for _ in range(count):
            job = await stamp.aenqueue(time.monotonic_ns())

            async def ended(job_id: int = job.id) -> bool:
                found = await store.jobs.get(job_id, at=None)
                return found is not None and found.state is JobState.SUCCEEDED

            await bench.until(ended, "the job to be done")
            found = await store.jobs.get(job.id, at=None)
            assert found is not None
            assert found.result is not None
            waits.append(json.loads(found.result) / 1e6)
    return {
        "pickup p50, ms": statistics.median(waits),
        "pickup p99, ms": statistics.quantiles(waits, n=100)[98],
    }


async def burst(bench: Bench, count: int) -> Figures:
    """Seconds from the tick until every one of `count` schedules of one expression has its ledger row
    and its job, with one scheduler."""
    await bench.empty()
    async with bench.app() as app:
        now = await (await app._store()).now(at=None)
        scheduler = await schedules(bench, app, count, HOUR, now)
        began = time.perf_counter()
        await scheduler.tick()
        took = time.perf_counter() - began
    assert await bench.count("jobs") == count
    await no_schedules(bench)
    return {f"burst of {count:,} schedules, s": took}


async def lateness(bench: Bench, count: int) -> Figures:
    """Milliseconds from a slot to its ledger rows, for `count` schedules that share it, over three
    slots in real time with one scheduler."""
    await bench.empty()
    period = timedelta(seconds=4)
    async with bench.app() as app:
        now = await (await app._store()).now(at=None)
        first = Every(period).next_after(now + PREPARED_WITHIN)
        assert first is not None
        scheduler = await schedules(bench, app, count, period, first)
        assert await (await app._store()).now(at=None) < first, "the first slot came before all was prepared"

        while await bench.count("slots") < 3 * count:
            # As long as the scheduler itself says: a poll of our own would be what is measured.
            await pause(await scheduler.tick())
    waits = await lateness_ms(bench)
    await no_schedules(bench)
    return {
        f"lateness of {count:,} schedules p50, ms": percentile(waits, 50),
        f"lateness of {count:,} schedules p99, ms": percentile(waits, 99),
    }


async def lateness_ms(bench: Bench) -> list[float]:
    """Of every ledger row, in order: from the slot to when it was decided, both by the database's clock."""
    unit = "(decided_at - slot_at) / 1000.0"
    if bench.engine == "postgresql":
        unit = "extract(epoch FROM decided_at - slot_at)::float8 * 1000"
    rows = await bench.rows(f"SELECT {unit} FROM {bench.table('slots')}")
    return sorted(float(late) for (late,) in rows)


async def rest(bench: Bench, count: int, seconds: float = 5.0) -> Figures:
    """What a scheduler costs while nothing is due: passes a second and its share of one core."""
    await bench.empty()
    async with bench.app() as app:
        now = await (await app._store()).now(at=None)
        scheduler = await schedules(bench, app, count, HOUR, now + HOUR)
        passes, cpu, began = 0, time.process_time(), time.perf_counter()
        while time.perf_counter() - began < seconds:
            await pause(await scheduler.tick())
            passes += 1
        share = (time.process_time() - cpu) / (time.perf_counter() - began)
    await no_schedules(bench)
    return {
        f"at rest with {count:,} schedules, passes/s": passes / seconds,
        f"at rest with {count:,} schedules, % of a core": 100 * share,
    }


async def schedules(
    bench: Bench, app: Mainspring, count: int, period: timedelta, first: datetime
) -> Scheduler:
    """So many schedules on one trigger, and a scheduler for them."""
    store = await app._store()
    await bench.execute(f"DELETE FROM {bench.table('specs')}")
    await store.schedules.put([one_of_a_burst("burst-0", period, first)], at=first - HOUR)
    await bench.copy_schedule("burst-0", count - 1)
    return Scheduler(store, app._clock, app._telemetry, poll=timedelta(seconds=1), chunk=2000)


def one_of_a_burst(name: str, period: timedelta, first: datetime) -> NewSchedule:
    """The schedule that all others of its burst are copied from."""
    return NewSchedule(
        name=name,
        task="noop",
        trigger=Every(period).encode(),
        payload=b"{}",
        overlap=Overlap.QUEUE_ALL,
        next_at=first,
        following_at=first + period,
    )


async def no_schedules(bench: Bench) -> None:
    await bench.execute(f"DELETE FROM {bench.table('schedules')}")
    await bench.empty()


async def wal(bench: Bench, count: int) -> Figures:
    """Bytes of write-ahead log per job, from enqueue to history."""
    await bench.empty()
    async with bench.app() as app:
        before = await _wal_position(bench)
        noop = task_of(app, "noop")
        await app.aenqueue_many(noop.job(**ARGUMENTS) for _ in range(count))
        stored = await _wal_position(bench)
        async with bench.workers(1, 200):
            await bench.until_done(count)
        after = await _wal_position(bench)
    return {
        "WAL per enqueue, bytes": (stored - before) / count,
        "WAL per job in all, bytes": (after - before) / count,
    }


async def _wal_position(bench: Bench) -> int:
    if bench.engine == "sqlite":
        # Measured on few enough jobs that the log is not yet written back and cut.
        log = Path(f"{bench.path}-wal")
        return log.stat().st_size if log.exists() else 0
    [(position,)] = await bench.rows("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
    return int(position)
