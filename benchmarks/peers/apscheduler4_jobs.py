"""APScheduler 4, an alpha, with data store and event broker on PostgreSQL. `README.md` says what each command
does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from apscheduler import AsyncScheduler, ConflictPolicy
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.eventbrokers.asyncpg import AsyncpgEventBroker
from apscheduler.executors.async_ import AsyncJobExecutor
from apscheduler.executors.subprocess import ProcessPoolJobExecutor
from apscheduler.executors.thread import ThreadPoolJobExecutor
from apscheduler.triggers.cron import CronTrigger
from commands import PERIOD, SCHEDULES, URL, About, run
from mark import ENDED, TICKED, mark
from sqlalchemy.ext.asyncio import create_async_engine

CONCURRENCY = int(os.environ.get("PEER_CONCURRENCY", "100"))

ABOUT = About(
    label="APScheduler 4 (alpha)",
    package="apscheduler",
    durability="a stored job, its claim and its end survive a crash of the server (synchronous commit), each "
    "end in a transaction of its own",
    settings=f"max_concurrent_jobs {CONCURRENCY}; max_running_jobs of `noop` and `tick` none (1 by "
    "default), of `slow` 10; uvloop; an isolated handler runs in a pool of 2 processes",
    handlers=["async", "sync", "isolated"],
    schedules=["minute", "second"],
)


async def noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


def noop_sync(number: int, sent_at: float) -> None:
    mark(number, sent_at)


async def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    await asyncio.sleep(1)
    mark(number, sent_at, ENDED)


async def tick(number: int) -> None:
    mark(number, kind=TICKED)


@asynccontextmanager
async def scheduler() -> AsyncIterator[AsyncScheduler]:
    executors = {
        "async": AsyncJobExecutor,
        "sync": ThreadPoolJobExecutor,
        "isolated": lambda: ProcessPoolJobExecutor(max_workers=2),
    }
    engine = create_async_engine(URL.replace("postgresql://", "postgresql+asyncpg://"))
    made = AsyncScheduler(
        SQLAlchemyDataStore(engine),
        AsyncpgEventBroker.from_async_sqla_engine(engine),
        max_concurrent_jobs=CONCURRENCY,
        # A stored job names its executor, so that of `noop` has one name, whichever it is.
        job_executors={"async": AsyncJobExecutor(), "noop": executors[ABOUT.handler()]()},
    )
    async with made:
        handler = noop if ABOUT.handler() == "async" else noop_sync
        await made.configure_task("noop", func=handler, job_executor="noop", max_running_jobs=None)
        await made.configure_task("slow", func=slow, max_running_jobs=10)
        await made.configure_task("tick", func=tick, max_running_jobs=None)
        yield made
    await engine.dispose()


async def prepare() -> None:
    """It makes its tables when it starts."""
    async with scheduler():
        pass


async def worker(_: int) -> None:
    async with scheduler() as made:
        for number in SCHEDULES:
            await made.add_schedule(
                "tick",
                CronTrigger(second=f"*/{PERIOD}") if PERIOD < 60 else CronTrigger(minute=f"*/{PERIOD // 60}"),
                id=f"tick{number}",
                args=(number,),
                conflict_policy=ConflictPolicy.replace,
            )
        await made.run_until_stopped()


class Client:
    def __init__(self, made: AsyncScheduler) -> None:
        self._scheduler = made

    async def one(self, task: str, number: int, sent_at: float) -> None:
        await self._scheduler.add_job(task, args=(number, sent_at))


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    async with scheduler() as made:
        yield Client(made)


async def pending() -> int:
    connection = await asyncpg.connect(URL)
    try:
        found: int = await connection.fetchval("select count(*) from jobs")
        return found
    finally:
        await connection.close()


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending, runner=uvloop.run)
