"""SAQ on Redis or on PostgreSQL, as the URL says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import uvloop
from commands import SCHEDULES, URL, About, cron, run
from mark import ENDED, TICKED, mark
from saq import CronJob, Queue, Worker

REDIS = URL.startswith("redis")
CONCURRENCY = 100 if REDIS else 50

LOST = (
    "Redis: what was stored since its last sync, a second ago at most, is lost when its machine fails."
    if REDIS
    else "PostgreSQL: jobs and their ends are committed."
)

ABOUT = About(
    label="SAQ",
    package="saq",
    durability=f"{LOST} Jobs of a killed worker are found by a sweep and, with one attempt as by "
    "default, aborted.",
    settings=f"concurrency {CONCURRENCY} (10, 20, 50 and, on Redis, 100 tried), uvloop. Workers "
    "fire schedules.",
    handlers=("async", "sync"),
    schedules=("minute", "second"),
)


async def noop(ctx: dict[str, Any], *, number: int, sent_at: float) -> None:
    mark(number, sent_at)


def noop_sync(ctx: dict[str, Any], *, number: int, sent_at: float) -> None:
    mark(number, sent_at)


async def slow(ctx: dict[str, Any], *, number: int, sent_at: float) -> None:
    mark(number, sent_at)
    await asyncio.sleep(1)
    mark(number, sent_at, ENDED)


def scheduled(number: int) -> Callable[..., Awaitable[None]]:
    """A schedule is known by its function's name, so each has a function of its own."""

    async def tick(ctx: dict[str, Any]) -> None:
        mark(number, kind=TICKED)

    tick.__qualname__ = tick.__name__ = f"tick_{number}"
    return tick


class Client:
    def __init__(self, queues: dict[str, Queue]) -> None:
        self._queues = queues

    async def one(self, task: str, number: int, sent_at: float) -> None:
        await self._queues[task].enqueue(task, number=number, sent_at=sent_at)


@contextlib.asynccontextmanager
async def connected() -> AsyncIterator[dict[str, Queue]]:
    """Concurrency is one number for all tasks of a queue, so slow jobs have a queue of their own."""
    queues = {name: Queue.from_url(URL, name=name) for name in ("noop", "slow")}
    # One after the other: on PostgreSQL each makes the tables when they are not there.
    for queue in queues.values():
        await queue.connect()
    try:
        yield queues
    finally:
        for queue in queues.values():
            await queue.disconnect()


@contextlib.asynccontextmanager
async def client() -> AsyncIterator[Client]:
    async with connected() as queues:
        yield Client(queues)


async def prepare() -> None:
    async with connected():
        pass


async def worker(number: int) -> None:
    ticks = [scheduled(each) for each in SCHEDULES]
    crons = [CronJob(tick, cron=cron("last")) for tick in ticks]
    async with connected() as queues:
        functions = [("noop", noop_sync if ABOUT.handler() == "sync" else noop), *ticks]
        fast = Worker(queues["noop"], functions=functions, concurrency=CONCURRENCY, cron_jobs=crons)
        held = Worker(queues["slow"], functions=[slow], concurrency=10)
        await asyncio.gather(fast.start(), held.start())


async def pending() -> int:
    async with connected() as queues:
        return sum([await queue.count("incomplete") for queue in queues.values()])


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending, runner=uvloop.run)
