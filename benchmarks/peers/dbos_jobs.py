"""DBOS: each job is a workflow without steps, on a queue. `README.md` says what each command does."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import sqlalchemy
from commands import SCHEDULES, URL, About, cron, run
from dbos import DBOS, DBOSClient
from mark import ENDED, TICKED, mark

CONCURRENCY = int(os.environ.get("PEER_CONCURRENCY", "100"))
POLL = float(os.environ.get("PEER_POLL", "0.02"))

ABOUT = About(
    label="DBOS",
    package="dbos",
    durability="a stored job, its start and its end survive a crash of the server (synchronous commit), one "
    "transaction each; a killed worker's jobs run again when a process of its executor's name starts",
    settings=f"worker_concurrency {CONCURRENCY}; polling_interval_sec {POLL} (1 by default), which a pickup "
    "waits for; `slow` in a queue of its own with worker_concurrency 10",
    handlers=["async", "sync"],
    schedules=["minute", "second"],
)


def application(number: int) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": _URL,
            "application_version": "1",
            # Whose jobs it resumes when it starts.
            "executor_id": f"worker{number}",
            "log_level": "ERROR",
            "scheduler_polling_interval_sec": 1.0,
        }
    )


async def noop(number: int, sent_at: float) -> None:
    mark(number, sent_at)


def noop_sync(number: int, sent_at: float) -> None:
    mark(number, sent_at)


async def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    await asyncio.sleep(1)
    mark(number, sent_at, ENDED)


async def tick(_: datetime, number: int) -> None:
    mark(number, kind=TICKED)


def queues() -> None:
    DBOS.register_queue("noop", worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)
    DBOS.register_queue("slow", worker_concurrency=10, polling_interval_sec=POLL)


def prepare() -> None:
    application(0)
    DBOS.launch()
    queues()
    DBOS.destroy()


def worker(number: int) -> None:
    application(number)
    DBOS.workflow(name="noop")(noop if ABOUT.handler() == "async" else noop_sync)
    DBOS.workflow(name="slow")(slow)
    ticking = DBOS.workflow(name="tick")(tick)
    DBOS.launch()
    queues()
    if SCHEDULES:
        DBOS.apply_schedules(
            [
                {
                    "schedule_name": f"tick{each}",
                    "workflow_fn": ticking,
                    "schedule": cron("first"),
                    "context": each,
                    "queue_name": "noop",
                }
                for each in SCHEDULES
            ]
        )
    threading.Event().wait()


class Client:
    def __init__(self, client: DBOSClient) -> None:
        self._client = client

    def one(self, task: str, number: int, sent_at: float) -> None:
        options = {"queue_name": task, "workflow_name": task, "app_version": "1"}
        self._client.enqueue(options, number, sent_at)


@contextmanager
def client() -> Iterator[Client]:
    connected = DBOSClient(system_database_url=_URL)
    yield Client(connected)
    connected.destroy()


def pending() -> int:
    engine = sqlalchemy.create_engine(_URL)
    with engine.connect() as connection:
        statement = "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING')"
        found = connection.execute(sqlalchemy.text(statement)).scalar()
    engine.dispose()
    return int(found or 0)


_URL = URL.replace("postgresql://", "postgresql+psycopg://")

if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending)
