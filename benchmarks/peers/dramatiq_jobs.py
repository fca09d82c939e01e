"""Dramatiq on Redis."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator

import dramatiq
from commands import URL, About, run
from dramatiq.brokers.redis import RedisBroker
from dramatiq.middleware.asyncio import AsyncIO
from mark import ENDED, mark

THREADS = 8
PREFETCH = 1000

ABOUT = About(
    label="Dramatiq",
    package="dramatiq",
    durability="Redis: what was stored since its last sync, a second ago at most, is lost when its machine "
    "fails; jobs are acknowledged when they ended, those of a killed worker run again some time after it has "
    "been silent for a minute (a thousandth of all commands looks for them).",
    settings=f"{THREADS} threads in one process (1 to 16 tried), so that eight slow jobs run at "
    f"once; a prefetch of {PREFETCH} (twice the threads unless told, and 100, tried).",
    handlers=("sync", "async"),
    lacks={"scheduler": "Dramatiq has no schedules"},
)

broker = RedisBroker(url=URL)
broker.add_middleware(AsyncIO())
dramatiq.set_broker(broker)

if ABOUT.handler() == "async":

    @dramatiq.actor
    async def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)

else:

    @dramatiq.actor
    def noop(number: int, sent_at: float) -> None:
        mark(number, sent_at)


@dramatiq.actor
def slow(number: int, sent_at: float) -> None:
    mark(number, sent_at)
    time.sleep(1)
    mark(number, sent_at, ENDED)


class Client:
    def one(self, task: str, number: int, sent_at: float) -> None:
        {"noop": noop, "slow": slow}[task].send(number, sent_at)


@contextlib.contextmanager
def client() -> Iterator[Client]:
    broker.client.ping()
    yield Client()


def prepare() -> None:
    """Keys make themselves."""


def worker(number: int) -> None:
    broker.emit_after("process_boot")
    found = dramatiq.Worker(broker, worker_threads=THREADS)
    found.queue_prefetch = PREFETCH  # as the variable dramatiq_queue_prefetch does
    found.start()
    signal.pause()


def pending() -> int:
    kept = sum(broker.client.scard(key) for key in broker.client.scan_iter("dramatiq:__acks__*"))
    return int(broker.client.llen("dramatiq:default")) + int(kept)


if __name__ == "__main__":
    run(ABOUT, prepare=prepare, worker=worker, client=client, pending=pending)
