"""Ours, on PostgreSQL or on an SQLite file, by the rules that the others follow."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from commands import PERIOD, SCHEDULES, URL, About, run
from mark import ENDED, TICKED, mark

from mainspring import Mainspring

POSTGRESQL = URL.startswith("postgresql:")
CONCURRENCY = 1000

ABOUT = About(
    label="Mainspring",
    package="mainspring",
    durability=(
        "enqueue returns when the job is on disk, and a job counts as done when its settlement is: fsync for "
        "both, on either store; a claim that a power cut undoes is made again."
    ),
    settings=(
        f"{CONCURRENCY:,} jobs in hand at once (default 32); uvloop (extra `fast`); all else as it comes."
    ),
    handlers=["async", "sync", "isolated"],
    schedules=["minute", "second"],
    bulk=20_000,
)

app = Mainspring(URL if POSTGRESQL else f"sqlite:///{URL}")


async def _noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


def _sync_noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


noop = app.task(name="noop", isolate=ABOUT.handler() == "isolated")(
    _sync_noop if ABOUT.handler() == "sync" else _noop
)


@app.task
async def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    await asyncio.sleep(1)
    mark(number, sent_at, ENDED)


@app.task
async def tick(number: int) -> None:
    mark(number, kind=TICKED)


for _number in SCHEDULES:
    _when = {"cron": "* * * * *"} if PERIOD == 60 else {"every": f"{PERIOD}s"}
    app.schedule(f"tick-{_number}", tick, args=[_number], **_when)  # type: ignore[arg-type]


async def prepare() -> None:
    store = await app._store(prepare=False)
    await store.migrate()
    await app.aclose()


def worker(number: int) -> None:
    # Its own command, as users start it; schedules are the scheduler's, so this one need not read them.
    os.environ["PEER_SCHEDULES"] = "0"
    _become("worker", number, "--concurrency", str(CONCURRENCY))


def scheduler(number: int) -> None:
    _become("scheduler", number)


def _become(command: str, number: int, *options: str) -> None:
    here = Path(__file__)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(here.parent), os.environ.get("PYTHONPATH")]))
    named = ["--name", f"{command}-{number}", "--log-level", "error"]
    os.execv(sys.executable, [sys.executable, "-m", "mainspring", command, str(here), *named, *options])


class Client:
    async def one(self, task: str, number: int, sent_at: float) -> None:
        await (slow if task == "slow" else noop).aenqueue(number, sent_at)

    async def many(self, jobs: Sequence[tuple[int, float]]) -> None:
        await app.aenqueue_many(noop.job(number, sent_at) for number, sent_at in jobs)


@asynccontextmanager
async def client() -> AsyncIterator[Client]:
    async with app:
        # Connected before the clock starts, with a session of the kind that stores jobs.
        await (await app._store()).queues.pauses()
        yield Client()


async def pending() -> int:
    async with app:
        depths = await (await app._store()).queues.depth(at=None)
        return sum(each.ready + each.delayed + each.running for each in depths)


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, scheduler=scheduler, client=client, pending=pending)
