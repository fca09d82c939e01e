"""Several stores on one database, and what they do to its workflows at the same time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import asyncpg

from mainspring.clock import SystemClock
from mainspring.errors import AnswerLost, StoreUnavailable
from mainspring.model.job import NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Verdict
from mainspring.model.workflow import Definition, NewWorkflow, WorkflowRecord
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from tests.support.desk import settlement
from tests.support.sides import Side

LEASE = timedelta(minutes=10)


@asynccontextmanager
async def open_stores(url: str, count: int) -> AsyncIterator[list[Store]]:
    """So many stores on one database, as of so many processes."""
    stores = [open_store(url, clock=SystemClock()) for _ in range(count)]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A session of the test's own."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        connection.terminate()


async def insist(call: Callable[[], Awaitable[Any]]) -> Any:
    """Until there is an answer: a deadlock, or a session that was ended, is one too."""
    while True:
        try:
            return await call()
        except (StoreUnavailable, AnswerLost):
            continue


async def join(store: Store, worker: int) -> None:
    """A worker with a long lease."""
    await store.processes.join(
        NewProcess(id=worker, role=Role.WORKER, name=f"w{worker}"), lease=LEASE, at=None
    )


async def begin(store: Store, worker: int, drawn: Definition, count: int = 1) -> list[int]:
    """Start so many workflows; nobody has looked at them yet."""
    ids = await store.queue.insert([NewJob(task="root", payload=b"{}")] * count, at=None)
    claims = await store.queue.claim(worker, queues=["default"], tasks=["root"], limit=count, at=None)
    new = NewWorkflow(definition=drawn)
    assert (
        await store.queue.settle([settlement(each, Verdict.STARTED, start=new) for each in claims], at=None)
        == []
    )
    return ids


async def resolve_all(store: Store) -> int:
    """Passes until nothing is left; how many jobs they released."""
    released = 0
    while True:
        done = await store.workflows.resolve(limit=1000, at=None)
        released += done.released
        if not done.taken and not done.busy:
            return released


async def the_workflow(store: Store, workflow_id: int) -> WorkflowRecord:
    """As it stands."""
    found = await store.workflows.get(workflow_id)
    assert found is not None
    return found


async def audit(store: Store, workflow_id: int, drawn: Definition) -> None:
    """Its counters are what its rows say."""
    side = Side(store, SystemClock(), random.Random(0), often=0)
    side.flows[0] = workflow_id
    await side.recount(0, drawn, quiet=True)
