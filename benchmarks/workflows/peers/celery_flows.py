"""Celery's canvas: a chord over a group, and chains."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from celery import Celery, chain, chord, group

URL = os.environ["PEER_URL"]
LENGTH = 10
PREFETCH = 100  # messages a process takes ahead; their default of four made no difference

app = Celery("celery_flows", broker=f"{URL}/0", backend=f"{URL}/1")
app.conf.update(
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=PREFETCH,
    worker_hijack_root_logger=False,
)


@app.task(name="part")
def part(number: int) -> int:
    return number


@app.task(name="total")
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task(name="link")
def link(number: int) -> int:
    return number + 1


def prepare() -> None:
    """Nothing: the server starts empty."""


def worker(number: str) -> None:
    # One process each, as ours are. With two it was the fastest of their pools; with one, a forked child did
    # chains a sixth faster, but is a second process.
    options = ["--pool=solo", "--loglevel=ERROR", f"--hostname=worker-{number}@localhost"]
    app.worker_main(["worker", *options, "--without-gossip", "--without-mingle", "--without-heartbeat"])


def ready(count: str) -> None:
    while len(app.control.ping(timeout=1)) < int(count):
        pass
    for workload in WORKLOADS.values():
        workload(20)


def drive(workload: str, size: str) -> None:
    ended, seen = WORKLOADS[workload](int(size))
    print(json.dumps({"ended": ended, "seen": seen}))


def drive_wide(size: int) -> tuple[float, float]:
    began = time.time()
    result = chord(group(part.s(number) for number in range(size)), total.s()).apply_async()
    answer = _read(result)
    seen = time.time() - began
    assert answer == sum(range(size)), answer
    return result.date_done.timestamp() - began, seen


def drive_chains(size: int) -> tuple[float, float]:
    began = time.time()
    rest = [link.s() for _ in range(LENGTH - 1)]
    results = [chain(link.s(number), *rest).apply_async() for number in range(size)]
    answers = [_read(result) for result in results]
    seen = time.time() - began
    assert answers == [number + LENGTH for number in range(size)]
    return max(result.date_done.timestamp() for result in results) - began, seen


def _read(result: Any) -> Any:
    # By default it asks for every parent, of a chord every member, again and again while it waits: on a
    # crowded machine neither workload was done in 400 s that way.
    return result.get(follow_parents=False)


WORKLOADS: dict[str, Callable[[int], tuple[float, float]]] = {
    "chord over a group": drive_wide,
    "chains": drive_chains,
}

COMMANDS: dict[str, Callable[..., None]] = {
    "prepare": prepare,
    "worker": worker,
    "ready": ready,
    "drive": drive,
}

if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    COMMANDS[command](*arguments)
