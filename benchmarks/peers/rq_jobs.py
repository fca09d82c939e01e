"""RQ on Redis. Its workers import this module by its name: jobs are stored as `rq_jobs.noop`."""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Iterator, Sequence

from commands import SCHEDULES, URL, About, cron, run
from mark import ENDED, TICKED, mark
from redis import Redis
from rq import Queue, SimpleWorker, Worker
from rq.cron import CronScheduler

QUEUE = "default"
KINDS = {"sync": SimpleWorker, "isolated": Worker}

ABOUT = About(
    label="RQ",
    package="rq",
    durability="Redis: what was stored since its last sync, a second ago at most, is lost when "
    "its machine fails; the job of a killed worker is found by maintenance and marked as failed.",
    settings="SimpleWorker, which runs jobs in its own process, one at a time; the Worker that "
    "forks for each job is the isolated handler. Results are kept for its default of 500 s "
    "(keeping none costs more). enqueue_many of 1,000. A CronScheduler fires schedules.",
    handlers=("sync", "isolated"),
    schedules=("minute", "second"),
    bulk=1000,
)


def noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    time.sleep(1)
    mark(number, sent_at, ENDED)


def tick(number: int) -> None:
    mark(number, kind=TICKED)


class Client:
    def __init__(self, connection: Redis) -> None:
        self._queue = Queue(QUEUE, connection=connection)

    def one(self, task: str, number: int, sent_at: float) -> None:
        self._queue.enqueue(f"rq_jobs.{task}", number, sent_at)

    def many(self, jobs: Sequence[tuple[int, float]]) -> None:
        self._queue.enqueue_many([Queue.prepare_data("rq_jobs.noop", job) for job in jobs])


@contextlib.contextmanager
def client() -> Iterator[Client]:
    with Redis.from_url(URL) as connection:
        connection.ping()
        yield Client(connection)


def prepare() -> None:
    """Keys make themselves."""


def worker(number: int) -> None:
    # Workers log every job unless they are told not to.
    KINDS[ABOUT.handler()]([QUEUE], connection=Redis.from_url(URL)).work(logging_level="WARNING")


def scheduler(number: int) -> None:
    found = CronScheduler(connection=Redis.from_url(URL), logging_level=logging.WARNING)
    task = importlib.import_module("rq_jobs").tick
    for each in SCHEDULES:
        found.register(task, QUEUE, args=(each,), cron=cron("last"), name=f"tick-{each}")
    found.start()


def pending() -> int:
    with Redis.from_url(URL) as connection:
        return int(connection.llen(f"rq:queue:{QUEUE}")) + int(connection.zcard(f"rq:wip:{QUEUE}"))


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, scheduler=scheduler, client=client, pending=pending)
