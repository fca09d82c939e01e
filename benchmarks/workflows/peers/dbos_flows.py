"""DBOS: a workflow that puts children into a queue and gathers them, and chains of two kinds."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable

import sqlalchemy
from dbos import DBOS, DBOSClient

URL = os.environ["PEER_URL"]
CONCURRENCY = 100  # of workflows in one process and queue; 30 and 500 were no faster
POLL = 0.05  # seconds, for queues and results; their default is one second
LENGTH = 10
VERSION = "1"
STARTS, PARTS = "starts", "parts"  # two queues, so that parents leave room for their children


@DBOS.workflow()
def part(number: int) -> int:
    return number


@DBOS.workflow()
def wide(count: int) -> int:
    handles = [DBOS.enqueue_workflow(PARTS, part, number) for number in range(count)]
    return sum(handle.get_result(polling_interval_sec=POLL) for handle in handles)


@DBOS.step()
def link(number: int) -> int:
    return number + 1


@DBOS.workflow()
def chain(number: int) -> int:
    for _ in range(LENGTH):
        number = link(number)
    return number


@DBOS.workflow()
async def link_child(number: int) -> int:
    return number + 1


@DBOS.workflow()
async def chain_of_children(number: int) -> int:
    # Not blocking: a thousand parents that wait would hold every thread their children need.
    for _ in range(LENGTH):
        handle = await DBOS.enqueue_workflow_async(PARTS, link_child, number)
        number = await handle.get_result(polling_interval_sec=POLL)
    return number


@DBOS.workflow()
def who() -> int:
    return os.getpid()


def launch(name: str) -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": URL,
            "log_level": "ERROR",
            "application_version": VERSION,
            "executor_id": name,
        }
    )
    DBOS.launch()
    for queue in (STARTS, PARTS):
        DBOS.register_queue(queue, worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)


def prepare() -> None:
    launch("prepare")
    DBOS.destroy()


def worker(number: str) -> None:
    launch(f"worker-{number}")
    threading.Event().wait()


def ready(count: str) -> None:
    client = DBOSClient(system_database_url=URL)
    seen: set[int] = set()
    while len(seen) < int(count):
        seen.add(client.enqueue(_to("who")).get_result(polling_interval_sec=POLL))
    for workload in WORKLOADS.values():
        workload(client, 20)
    client.destroy()


def drive(workload: str, size: str) -> None:
    client = DBOSClient(system_database_url=URL)
    ended, seen = WORKLOADS[workload](client, int(size))
    client.destroy()
    print(json.dumps({"ended": ended, "seen": seen}))


def drive_wide(client: DBOSClient, size: int) -> tuple[float, float]:
    began = time.time()
    handle = client.enqueue(_to("wide"), size)
    answer = handle.get_result(polling_interval_sec=POLL)
    seen = time.time() - began
    assert answer == sum(range(size)), answer
    return _last_end(client, [handle.workflow_id]) - began, seen


def drive_chains(client: DBOSClient, name: str, size: int) -> tuple[float, float]:
    engine = sqlalchemy.create_engine(URL.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect():
        pass  # connected before the clock starts, as the client is
    began = time.time()
    with engine.begin() as connection:  # one commit for all: the nearest they have to a bulk call
        handles = [client.enqueue_in_transaction(connection, _to(name), number) for number in range(size)]
    answers = [handle.get_result(polling_interval_sec=POLL) for handle in handles]
    seen = time.time() - began
    assert answers == [number + LENGTH for number in range(size)]
    return _last_end(client, [handle.workflow_id for handle in handles]) - began, seen


def _to(name: str) -> dict[str, str]:
    return {"queue_name": STARTS, "workflow_name": name, "app_version": VERSION}


def _last_end(client: DBOSClient, ids: list[str]) -> float:
    found = client.list_workflows(workflow_ids=ids, load_input=False, load_output=False)
    assert len(found) == len(ids)
    return max(float(each.completed_at) for each in found) / 1000


WORKLOADS: dict[str, Callable[[DBOSClient, int], tuple[float, float]]] = {
    "fan-out of queued children": drive_wide,
    "chains of steps in one process": lambda client, size: drive_chains(client, "chain", size),
    "chains of queued children": lambda client, size: drive_chains(client, "chain_of_children", size),
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
