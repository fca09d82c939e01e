"""APScheduler 3 with its job store on PostgreSQL. `README.md` says what each command does.

Scheduler and executor are one process; a job without a trigger is one that is due at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy
from apscheduler.executors.pool import ProcessPoolExecutor, ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.cron import CronTrigger
from commands import PERIOD, SCHEDULES, URL, About, run
from mark import ENDED, TICKED, mark

THREADS = int(os.environ.get("PEER_THREADS", "10"))

ABOUT = About(
    label="APScheduler 3",
    package="apscheduler",
    durability="a stored job survives a crash of the server (synchronous commit), and is deleted before it "
    "is run: a killed worker loses what it had taken; a second scheduler on the same store runs jobs again",
    settings=f"misfire_grace_time none (1 s by default, and what is later is dropped); {THREADS} threads; "
    "isolated handlers in a pool of 2 processes; async ones are left out: its scheduler empties the "
    "store on the event loop before the first of them runs, so that their marks say nothing of the rate",
    handlers=["sync", "isolated"],
    schedules=["minute", "second"],
    lacks={"feed": "a running scheduler does not learn of a job that another process stores"},
)


def noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    time.sleep(1)
    mark(number, sent_at, ENDED)


def tick(number: int) -> None:
    mark(number, kind=TICKED)


def prepare() -> None:
    """It makes its table when it starts."""
    scheduler = BackgroundScheduler(jobstores=_stores())
    scheduler.start(paused=True)


def worker(_: int) -> None:
    threads = ABOUT.handler() == "sync"
    scheduler = BlockingScheduler(
        jobstores=_stores(),
        executors={
            "default": ThreadPoolExecutor(THREADS) if threads else ProcessPoolExecutor(2),
            "slow": ThreadPoolExecutor(10),
            "tick": ThreadPoolExecutor(THREADS),
        },
        timezone="UTC",
    )
    for number in SCHEDULES:
        scheduler.add_job(
            "__main__:tick",
            CronTrigger(second=f"*/{PERIOD}") if PERIOD < 60 else CronTrigger(minute=f"*/{PERIOD // 60}"),
            args=(number,),
            id=f"tick{number}",
            executor="tick",
            misfire_grace_time=None,
            replace_existing=True,
        )
    scheduler.start()


class Client:
    def __init__(self, scheduler: BackgroundScheduler) -> None:
        self._scheduler = scheduler

    def one(self, task: str, number: int, sent_at: float) -> None:
        self._scheduler.add_job(
            f"__main__:{task}",
            args=(number, sent_at),
            executor="default" if task == "noop" else "slow",
            misfire_grace_time=None,
        )


@contextmanager
def client() -> Iterator[Client]:
    """It is never shut down: a paused scheduler that is shut down takes due jobs and drops them."""
    scheduler = BackgroundScheduler(jobstores=_stores(), timezone="UTC")
    scheduler.start(paused=True)
    yield Client(scheduler)


def pending() -> int:
    engine = sqlalchemy.create_engine(_URL)
    with engine.connect() as connection:
        found = connection.execute(sqlalchemy.text("select count(*) from apscheduler_jobs")).scalar()
    engine.dispose()
    return int(found or 0)


def _stores() -> dict[str, SQLAlchemyJobStore]:
    return {"default": SQLAlchemyJobStore(url=_URL)}


_URL = URL.replace("postgresql://", "postgresql+psycopg://")

if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending)
