"""Procrastinate on psycopg. `README.md` says what each command does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvloop
from commands import SCHEDULES, URL, About, cron, run
from mark import ENDED, TICKED, mark
from procrastinate import App, PsycopgConnector

CONCURRENCY = int(os.environ.get("PEER_CONCURRENCY", "4"))

ABOUT = About(
    label="Procrastinate",
    package="procrastinate",
    durability="a stored job, its start and its end survive a crash of the server (synchronous commit), one "
    "transaction each; a killed worker's jobs stay `doing` until a task of the user's own retries them",
    settings=f"concurrency {CONCURRENCY} (1 by default); uvloop; ten at once were slower in every run",
    handlers=["async", "sync"],
    schedules=["minute", "second"],
    bulk=1000,
)

app = App(connector=PsycopgConnector(conninfo=URL))

if ABOUT.handler() == "async":

    @app.task(name="noop")
    async def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)

else:

    @app.task(name="noop")
    def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)


@app.task(name="slow")
async def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    await asyncio.sleep(1)
    mark(number, sent_at, ENDED)


@app.task(name="tick")
async def tick(timestamp: int, number: int) -> None:
    mark(number, kind=TICKED)


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def worker(_: int) -> None:
    for number in SCHEDULES:
        app.periodic(cron=cron("last"), periodic_id=str(number), task_kwargs={"number": number})(tick)
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY)


class Client:
    async def one(self, task: str, number: int, sent_at: float) -> None:
        await (noop if task == "noop" else slow).defer_async(number=number, sent_at=sent_at)

    async def many(self, jobs: list[tuple[int, float]]) -> None:
        await noop.batch_defer_async(*({"number": number, "sent_at": sent_at} for number, sent_at in jobs))


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    async with app.open_async():
        yield Client()


async def pending() -> int:
    async with app.open_async():
        found = await app.connector.execute_query_one_async(
            "select count(*) as count from procrastinate_jobs where status in ('todo', 'doing')"
        )
        return int(found["count"])


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending, runner=uvloop.run)
