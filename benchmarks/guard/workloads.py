"""The work whose counts are kept: what it does at a size, and between which sizes its slope is taken."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from benchmarks.bench import Bench
from benchmarks.guard.counts import KINDS
from benchmarks.measures import ARGUMENTS, HOUR, no_schedules
from mainspring import Mainspring
from mainspring.model.schedule import NewSchedule, Overlap
from mainspring.process.serve import aserve
from mainspring.scheduler.scheduler import Scheduler
from mainspring.triggers.intervals import Every

CONCURRENCY = 10
"""Claims are filled by hands, not by chance: jobs are there before the worker is. So few, that there are
enough claims to tell one more or less from a tenth of them."""
CHUNK = 200
"""Schedules fired by one statement: a burst takes several."""
SECOND = timedelta(seconds=1)
_QUIET = {
    "worker.concurrency": CONCURRENCY,
    "worker.threads": 4,
    # Nothing in these runs waits that long: what comes by the clock stays out.
    "worker.poll": "30s",
    "worker.heartbeat": "60s",
    "worker.lease": "300s",
}

STORES = ("sqlite", "postgresql")

Work = Callable[[], Coroutine[Any, Any, None]]
"""What is counted: prepared, so that it does nothing else."""


@dataclass(frozen=True)
class Workload:
    """Something a user pays for by the job."""

    name: str
    small: int
    large: int
    """The difference of two sizes is free of what a start and an end cost."""
    prepared: Callable[[Bench, int], Awaitable[Work]]
    unit: str = "job"
    repeats: int = 2
    """Rounds at each size. Where two ends race (a thread's and the database's), more of them are needed to
    see one that nothing disturbed."""
    only: tuple[str, ...] = STORES
    kinds: tuple[str, ...] = KINDS
    """The counts that are the same every time; others depend on who was first."""


async def noop(tenant: str, month: str) -> None:
    """As little as a handler can do."""


def sync_noop(tenant: str, month: str) -> None:
    """The same, in a thread."""


def _app(bench: Bench) -> Mainspring:
    app = Mainspring(bench.url)
    app._configure(dict(_QUIET))
    app.task(name="noop")(noop)
    app.task(name="sync_noop")(sync_noop)
    return app


async def _enqueued(bench: Bench, task: str, count: int) -> None:
    async with _app(bench) as app:
        found = app._registry.get(task)
        await app.aenqueue_many(found.job(**ARGUMENTS) for _ in range(count))


async def _one_by_one(bench: Bench, count: int) -> Work:
    async def work() -> None:
        async with _app(bench) as app:
            task = app._registry.get("noop")
            for _ in range(count):
                await task.aenqueue(**ARGUMENTS)

    return work


async def _in_bulk(bench: Bench, count: int) -> Work:
    async def work() -> None:
        async with _app(bench) as app:
            task = app._registry.get("noop")
            await app.aenqueue_many(task.job(**ARGUMENTS) for _ in range(count))

    return work


def _draining(task: str) -> Callable[[Bench, int], Awaitable[Work]]:
    async def prepared(bench: Bench, count: int) -> Work:
        await _enqueued(bench, task, count)

        async def work() -> None:
            async with _app(bench) as app:
                await aserve(app, scheduler=False, burst=True)
            # It ended because nothing was left, and not because something went wrong.
            assert await bench.count("runs") == count

        return work

    return prepared


async def _stored(bench: Bench, triggers: list[str], each: int, first: timedelta) -> None:
    """Schedules whose slot is so far from now: as many of each trigger."""
    await no_schedules(bench)
    async with _app(bench) as app:
        store = await app._store()
        now = await store.now(at=None)
        news = [
            NewSchedule(
                name=f"{number}",
                task="noop",
                trigger=trigger,
                payload=b"{}",
                overlap=Overlap.QUEUE_ALL,
                next_at=now + first,
                following_at=now + first + HOUR,
            )
            for number, trigger in enumerate(triggers)
        ]
        await bench.execute(f"DELETE FROM {bench.table('specs')}")
        await store.schedules.put(news, at=now - HOUR)
    if each > 1:
        await bench.copy_schedule("0", each - 1)


async def _passes(bench: Bench, count: int) -> None:
    async with _app(bench) as app:
        store = await app._store()
        scheduler = Scheduler(store, app._clock, app._telemetry, poll=HOUR, chunk=CHUNK)
        for _ in range(count):
            await scheduler.tick()


async def _burst(bench: Bench, count: int) -> Work:
    """One pass, and this many schedules of one trigger are due; or none."""
    await _stored(bench, [Every(HOUR).encode()], max(count, 1), -SECOND if count else HOUR)

    async def work() -> None:
        await _passes(bench, 1)
        assert await bench.count("slots") == count

    return work


async def _specs(bench: Bench, count: int) -> Work:
    """One pass, and this many triggers are due, with a schedule each."""
    triggers = [Every(HOUR + number * SECOND).encode() for number in range(max(count, 1))]
    await _stored(bench, triggers, 1, -SECOND if count else HOUR)

    async def work() -> None:
        await _passes(bench, 1)
        assert await bench.count("slots") == count

    return work


async def _rest(bench: Bench, count: int) -> Work:
    """So many passes while nothing is due."""
    await _stored(bench, [Every(HOUR).encode()], 10, HOUR)
    return lambda: _passes(bench, count)


WORKLOADS = (
    Workload("enqueue one by one", 10, 60, _one_by_one),
    Workload("enqueue in bulk", 200, 1000, _in_bulk),
    Workload("drain, async handler", 100, 500, _draining("noop"), repeats=6, only=("postgresql",)),
    Workload(
        "drain, async handler",
        100,
        500,
        _draining("noop"),
        repeats=6,
        only=("sqlite",),
        # Its log has whole pages: how many jobs share one is a matter of who was first.
        kinds=("instructions", "calls", "statements"),
    ),
    Workload(
        "drain, sync handler",
        100,
        500,
        _draining("sync_noop"),
        repeats=3,
        # How many settlements share a statement is the threads' affair. What a statement costs is the async
        # handler's figure; where it is cheap, the path through the threads can be seen.
        only=("sqlite",),
        kinds=("instructions", "calls"),
    ),
    Workload("burst of one trigger", 0, 1000, _burst, unit="slot"),
    Workload("many triggers", 0, 100, _specs, unit="slot"),
    Workload("scheduler at rest", 2, 12, _rest, unit="pass"),
)
