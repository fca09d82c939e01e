"""Celery on Redis."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import redis
from celery import Celery, Task
from celery.schedules import crontab
from commands import PERIOD, SCHEDULES, URL, About, run
from mark import ENDED, TICKED, mark

PREFETCH = 100
SLOTS = {"sync": ("solo", 1), "isolated": ("prefork", 2)}

ABOUT = About(
    label="Celery",
    package="celery",
    durability="Redis: what was stored since its last sync, a second ago at most, is lost when "
    "its machine fails; jobs are acknowledged when they ended (task_acks_late), those of a "
    "killed worker run again after an hour.",
    settings="The solo pool, which costs the least for each job (threads with 4 and 10, and "
    "prefork with 1 and 2, tried): one job at a time in each worker; prefork with 2 processes "
    "for isolated handlers. A prefetch multiplier of 100 (1,000 was no faster), no results, no "
    "gossip, mingle or heartbeat. A beat fires schedules.",
    handlers=("sync", "isolated"),
    schedules=("minute",),
)

app = Celery("jobs", broker=URL)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    beat_schedule={
        f"tick-{number}": {
            "task": "tick",
            "schedule": crontab(minute=f"*/{PERIOD // 60 or 1}"),
            "args": (number,),
        }
        for number in SCHEDULES
    },
)


@app.task(name="noop")
def noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


@app.task(name="slow")
def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    time.sleep(1)
    mark(number, sent_at, ENDED)


@app.task(name="tick")
def tick(number: int) -> None:
    mark(number, kind=TICKED)


class Client:
    def __init__(self, producer: Any) -> None:
        self._producer = producer
        self._tasks: dict[str, Task] = {"noop": noop, "slow": slow}

    def one(self, task: str, number: int, sent_at: float) -> None:
        self._tasks[task].apply_async((number, sent_at), producer=self._producer)


@contextlib.contextmanager
def client() -> Iterator[Client]:
    with app.producer_pool.acquire(block=True) as producer:
        producer.connection.default_channel.client.ping()
        yield Client(producer)


def prepare() -> None:
    """Keys make themselves."""


def worker(number: int) -> None:
    pool, slots = SLOTS[ABOUT.handler()]
    options = ["-P", pool, "-c", str(slots), "--prefetch-multiplier", str(PREFETCH)]
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "WARNING"]
    app.worker_main(["worker", *options, *quiet, "-n", f"worker-{number}@bench"])


def scheduler(number: int) -> None:
    # The scheduler that keeps nothing in a file: what it fired before it was started is of no use here.
    app.Beat(scheduler_cls="celery.beat:Scheduler", loglevel="WARNING", quiet=True).run()


def pending() -> int:
    with redis.Redis.from_url(URL) as connection:
        return int(connection.llen("celery")) + int(connection.hlen("unacked"))


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, scheduler=scheduler, client=client, pending=pending)
