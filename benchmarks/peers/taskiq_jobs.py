"""Taskiq on a stream of Redis."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import uvloop
from commands import PERIOD, SCHEDULES, URL, About, cron, run
from mark import ENDED, TICKED, mark
from redis.asyncio import Redis
from taskiq import TaskiqScheduler
from taskiq.api import run_receiver_task
from taskiq.cli.scheduler.run import SchedulerLoop
from taskiq.schedule_sources import LabelScheduleSource
from taskiq_redis import RedisStreamBroker

AT_ONCE = 100
READ = 100
STREAM = "jobs"

ABOUT = About(
    label="Taskiq",
    package="taskiq",
    durability="Redis: what was stored since its last sync, a second ago at most, is lost when "
    "its machine fails; jobs are acknowledged when they ended, those of a killed worker are "
    "claimed by another after ten minutes.",
    settings=f"A stream, max_async_tasks {AT_ONCE} (10 and 1,000 tried), xread_count {READ} (1,000 "
    "was no faster), no prefetch beyond it (100 was no faster), no validation of arguments "
    "(--no-parse), uvloop. Its scheduler skips the first run, which is not on the minute.",
    handlers=("async", "sync"),
    schedules=("minute",),
)

# Jobs that were there before its first worker count, too: from the first message on.
broker = RedisStreamBroker(URL or "redis://", queue_name=STREAM, consumer_id="0", xread_count=READ)

if ABOUT.handler() == "sync":

    @broker.task(task_name="noop")
    def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)

else:

    @broker.task(task_name="noop")
    async def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)


# The limit of a worker is one number for all its tasks, so this task keeps its own.
ten = asyncio.Semaphore(10)


@broker.task(task_name="slow")
async def slow(number: int, sent_at: float) -> None:
    async with ten:
        mark(number, sent_at)
        await asyncio.sleep(1)
        mark(number, sent_at, ENDED)


@broker.task(
    task_name="tick",
    schedule=[{"cron": cron(), "args": [each]} for each in SCHEDULES if PERIOD >= 60],
)
async def tick(number: int) -> None:
    mark(number, kind=TICKED)


class Client:
    async def one(self, task: str, number: int, sent_at: float) -> None:
        await (noop if task == "noop" else slow).kiq(number, sent_at)


@contextlib.asynccontextmanager
async def client() -> AsyncIterator[Client]:
    await broker.startup()
    try:
        yield Client()
    finally:
        await broker.shutdown()


async def prepare() -> None:
    """Makes the stream and the group of its readers."""
    async with client():
        pass


async def worker(number: int) -> None:
    await run_receiver_task(broker, max_async_tasks=AT_ONCE, validate_params=False, run_startup=True)


async def scheduler(number: int) -> None:
    labels = LabelScheduleSource(broker)
    found = TaskiqScheduler(broker, [labels])
    await labels.startup()
    await found.startup()
    # As `taskiq scheduler --skip-first-run`: else it fires in the middle of a minute, when it starts.
    await SchedulerLoop(found).run(skip_first_run=True)


async def pending() -> int:
    async with Redis.from_url(URL) as connection:
        groups = await connection.xinfo_groups(STREAM)
    return sum(int(group["pending"]) + int(group["lag"] or 0) for group in groups)


if __name__ == "__main__":
    run(
        ABOUT,
        prepare=prepare,
        worker=worker,
        scheduler=scheduler,
        client=client,
        pending=pending,
        runner=uvloop.run,
    )
