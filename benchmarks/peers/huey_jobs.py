"""Huey on Redis, or on SQLite when the URL is a path."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from commands import PERIOD, SCHEDULES, URL, About, run
from huey import RedisHuey, SqliteHuey, crontab
from mark import ENDED, TICKED, mark

REDIS = "://" in URL
WORKERS = 4

LOST = (
    "Redis: what was stored since its last sync, a second ago at most, is lost when its machine fails."
    if REDIS
    else "SQLite in WAL mode with synchronous FULL: every job is on the disk when the call returns."
)

ABOUT = About(
    label="Huey",
    package="huey",
    durability=f"{LOST} A job is taken off when it begins: a killed worker's jobs are lost.",
    settings=f"{WORKERS} threads (1, 8 and 10 tried), so that four slow jobs run at once, or "
    "processes for isolated handlers; polls every 10 ms where it polls. Each worker fires "
    "schedules itself.",
    handlers=("sync", "isolated"),
    schedules=("minute",),
)

huey = RedisHuey("jobs", url=URL) if REDIS else SqliteHuey("jobs", filename=URL)


@huey.task()
def noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


@huey.task()
def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    time.sleep(1)
    mark(number, sent_at, ENDED)


def scheduled(number: int) -> None:
    """A schedule carries no arguments, so each has a function of its own."""

    @huey.periodic_task(crontab(minute=f"*/{PERIOD // 60 or 1}"), name=f"tick_{number}")
    def tick() -> None:
        mark(number, kind=TICKED)


class Client:
    def one(self, task: str, number: int, sent_at: float) -> None:
        {"noop": noop, "slow": slow}[task](number, sent_at)


@contextlib.contextmanager
def client() -> Iterator[Client]:
    huey.pending_count()
    yield Client()


def prepare() -> None:
    """The storage makes its tables when it is opened."""


def worker(number: int) -> None:
    for each in SCHEDULES:
        scheduled(each)
    kind = {"sync": "thread", "isolated": "process"}[ABOUT.handler()]
    delays = {"initial_delay": 0.01, "max_delay": 0.01}
    huey.create_consumer(workers=WORKERS, worker_type=kind, periodic=bool(SCHEDULES), **delays).run()


def pending() -> int:
    return int(huey.pending_count())


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending)
