"""Oban for Python, the open-source edition. `README.md` says what each command does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvloop
from commands import SCHEDULES, URL, About, cron, run
from mark import ENDED, TICKED, mark
from oban import Oban, job
from oban.schema import install

LIMIT = int(os.environ.get("PEER_LIMIT", "1000"))

ABOUT = About(
    label="Oban (Python)",
    package="oban",
    durability="a stored job and its end survive a crash of the server (synchronous commit); ends wait for "
    "the next claim, some milliseconds, and those jobs run again when the worker is killed before that",
    settings=f"queue limit {LIMIT}; uvloop; `slow` in a queue of its own with limit 10; a sync handler is a "
    "plain function, which it calls on the event loop",
    handlers=["async", "sync"],
    schedules=["minute"],
    bulk=1000,
)

UNFINISHED = ["available", "executing", "retryable", "scheduled"]

if ABOUT.handler() == "async":

    @job(queue="noop")
    async def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)

else:

    @job(queue="noop")
    def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)


@job(queue="slow")
async def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    await asyncio.sleep(1)
    mark(number, sent_at, ENDED)


def ticking(number: int) -> None:
    """A schedule belongs to a worker without arguments, so each needs a worker, known by its name."""

    async def tick() -> None:
        mark(number, kind=TICKED)

    tick.__name__ = tick.__qualname__ = f"tick{number}"
    job(queue="noop", cron=cron())(tick)


async def prepare() -> None:
    pool = await Oban.create_pool(URL)
    await install(pool)
    await pool.close()


async def worker(_: int) -> None:
    for number in SCHEDULES:
        ticking(number)
    pool = await Oban.create_pool(URL)
    queues = {"noop": LIMIT, "slow": 10}
    async with Oban(pool=pool, queues=queues):
        await asyncio.Event().wait()


class Client:
    def __init__(self, oban: Oban) -> None:
        self._oban = oban

    async def one(self, task: str, number: int, sent_at: float) -> None:
        await self._oban.enqueue((noop if task == "noop" else slow).new(number, sent_at))

    async def many(self, jobs: list[tuple[int, float]]) -> None:
        await self._oban.enqueue_many([noop.new(number, sent_at) for number, sent_at in jobs])


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    pool = await Oban.create_pool(URL)
    async with Oban(pool=pool) as oban:
        yield Client(oban)
    await pool.close()


async def pending() -> int:
    pool = await Oban.create_pool(URL)
    async with pool.connection() as connection:
        found = await connection.execute(
            "select count(*) from oban_jobs where state::text = any(%s)", (UNFINISHED,)
        )
        (count,) = await found.fetchone()
    await pool.close()
    return int(count)


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending, runner=uvloop.run)
