"""PgQueuer on asyncpg. `README.md` says what each command does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from commands import SCHEDULES, URL, About, cron, run
from mark import ENDED, TICKED, mark
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job, Schedule
from pgqueuer.queries import Queries

BATCH = int(os.environ.get("PEER_BATCH", "1000"))

ABOUT = About(
    label="PgQueuer",
    package="pgqueuer",
    durability="a stored job and its end survive a crash of the server (logged tables, synchronous commit); "
    "ends wait for a batch of them or 0.1 s, and those jobs run again when the worker is killed before that",
    settings=f"batch_size {BATCH} (10 by default); uvloop; a sync handler is what its documentation says: a "
    "coroutine that awaits asyncio.to_thread",
    handlers=["async", "sync"],
    schedules=["minute", "second"],
    bulk=1000,
)


async def noop(job: Job) -> None:
    noop_sync(job)


async def noop_in_a_thread(job: Job) -> None:
    await asyncio.to_thread(noop_sync, job)


def noop_sync(job: Job) -> None:
    number, sent_at = (job.payload or b"").split()
    mark(int(number), float(sent_at))


async def slow(job: Job) -> None:
    number, sent_at = (job.payload or b"").split()
    mark(int(number), float(sent_at))
    await asyncio.sleep(1)
    mark(int(number), float(sent_at), ENDED)


def ticking(number: int) -> Callable[[Schedule], object]:
    async def tick(_: Schedule) -> None:
        mark(number, kind=TICKED)

    return tick


async def prepare() -> None:
    async with connected() as driver:
        await Queries(driver).install()


async def worker(_: int) -> None:
    async with connected() as driver:
        application = PgQueuer(driver)
        application.entrypoint("noop")(noop if ABOUT.handler() == "async" else noop_in_a_thread)
        application.entrypoint("slow", concurrency_limit=10)(slow)
        for number in SCHEDULES:
            application.schedule(f"tick{number}", cron("last"))(ticking(number))
        await application.run(batch_size=BATCH)


class Client:
    def __init__(self, driver: AsyncpgDriver) -> None:
        self._queries = Queries(driver)

    async def one(self, task: str, number: int, sent_at: float) -> None:
        await self._queries.enqueue(task, b"%d %f" % (number, sent_at))

    async def many(self, jobs: list[tuple[int, float]]) -> None:
        payloads: list[bytes | None] = [b"%d %f" % job for job in jobs]
        await self._queries.enqueue(["noop"] * len(jobs), payloads, [0] * len(jobs))


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    async with connected() as driver:
        yield Client(driver)


async def pending() -> int:
    connection = await asyncpg.connect(URL)
    try:
        found: int = await connection.fetchval("select count(*) from pgqueuer")
        return found
    finally:
        await connection.close()


@asynccontextmanager
async def connected() -> AsyncIterator[AsyncpgDriver]:
    connection = await asyncpg.connect(URL)
    try:
        yield AsyncpgDriver(connection)
    finally:
        await connection.close()


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending, runner=uvloop.run)
