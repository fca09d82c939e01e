"""What is special to SQLite: files, the writer's groups, durability, checkpoints and driver errors."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.clock import SystemClock
from mainspring.errors import SchemaMismatch, StoreError, StoreFull, StoreUnavailable
from mainspring.model.job import JobFilter, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Settlement, Verdict
from mainspring.store.sqlite import connection as connection_module
from mainspring.store.sqlite.connection import MIGRATIONS, Session
from mainspring.store.sqlite.store import SQLiteStore
from mainspring.testing.clock import ManualClock

LEASE = timedelta(seconds=15)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "mainspring.db")


@pytest.fixture
def opened(path: str, run: Any, clock: ManualClock) -> Iterator[Callable[..., SQLiteStore]]:
    """A factory of stores on one file, the first of them migrated; all are closed afterwards."""
    stores: list[SQLiteStore] = []

    def open_one(*, migrated: bool = True) -> SQLiteStore:
        store = SQLiteStore(path, clock)
        stores.append(store)
        if migrated:
            run(store.migrate())
        return store

    yield open_one
    for store in stores:
        run(store.close())


def new(count: int = 1, payload: bytes = b"{}") -> list[NewJob]:
    return [NewJob(task="work", payload=payload) for _ in range(count)]


def member(process_id: int = 7) -> NewProcess:
    return NewProcess(id=process_id, role=Role.WORKER, name=f"worker-{process_id}")


def synchronous(store: SQLiteStore, run: Any) -> int:
    """The level the writer's connection was left at: 1 is NORMAL, 2 is FULL."""

    def look(session: Session) -> int:
        return int(session._connection.execute("PRAGMA synchronous").fetchone()[0])

    return int(run(store._database._writer.run(look, durable=store._database._writer._durable or False)))


def test_a_new_file_is_readable_by_its_owner_alone(opened: Any, path: str, run: Any) -> None:
    store = opened()

    run(store.queue.insert(new(), at=None))

    for suffix in ("", "-wal", "-shm"):
        assert stat.S_IMODE(os.stat(path + suffix).st_mode) == 0o600


def test_a_missing_directory_is_named(tmp_path: Path, run: Any, clock: ManualClock) -> None:
    store = SQLiteStore(str(tmp_path / "missing" / "x.db"), clock)

    with pytest.raises(StoreUnavailable, match="missing' does not exist"):
        run(store.migrate())
    run(store.close())


def test_a_file_that_is_no_database_is_reported_plainly(path: str, run: Any, clock: ManualClock) -> None:
    Path(path).write_bytes(b"no database " * 100)
    store = SQLiteStore(path, clock)

    with pytest.raises(StoreError, match="is no SQLite database"):
        run(store.migrate())
    run(store.close())


def test_a_store_without_a_schema_asks_to_be_migrated(opened: Any, run: Any) -> None:
    store = opened(migrated=False)

    with pytest.raises(SchemaMismatch, match=f"version 0, this code needs {len(MIGRATIONS)}"):
        run(store.queue.insert(new(), at=None))
    with pytest.raises(SchemaMismatch):
        run(store.verify())


def test_migrating_again_applies_nothing(opened: Any, run: Any) -> None:
    store = opened(migrated=False)

    assert run(store.migrate()) == [step.name for step in MIGRATIONS]
    assert run(store.migrate()) == []
    run(store.verify())


def test_a_closed_store_refuses_calls(opened: Any, run: Any) -> None:
    store = opened()
    run(store.close())

    with pytest.raises(StoreUnavailable, match="closed"):
        run(store.queue.insert(new(), at=None))
    run(store.close())


def test_a_locked_database_is_unavailable(opened: Any, path: str, run: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(connection_module, "BUSY_TIMEOUT", timedelta(milliseconds=50))
    store = opened()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreUnavailable, match="locked"):
        run(store.queue.insert(new(), at=None))

    other.execute("ROLLBACK")
    other.close()
    assert len(run(store.queue.insert(new(), at=None))) == 1


def test_the_database_clock_decides_without_a_stamp(run: Any) -> None:
    clock = SystemClock()
    store = SQLiteStore(":memory:", clock)

    now = run(store.now(at=None))

    assert abs(now - clock.now()) < timedelta(seconds=2)
    run(store.close())


def test_calls_that_wait_together_commit_together(opened: Any, run: Any) -> None:
    store = opened()
    gate = threading.Event()

    async def scenario() -> int:
        blocker = asyncio.create_task(store._database.write(lambda session: gate.wait()))
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(store.queue.insert(new(), at=None)) for _ in range(20)]
        await asyncio.sleep(0.05)
        before = store._database.hints
        gate.set()
        await asyncio.gather(blocker, *waiting)
        return store._database.hints - before

    assert run(scenario()) == 1
    assert len({job.id for job in run(store.jobs.find(JobFilter(limit=1000), at=None))}) == 20


def test_a_call_that_fails_in_a_group_undoes_only_itself(opened: Any, run: Any) -> None:
    store = opened()
    gate = threading.Event()

    def broken(session: Session) -> None:
        session.each("add_priority_levels", [{"queue": "never", "priority": 1}])
        raise ValueError("mine alone")

    async def scenario() -> list[object]:
        blocker = asyncio.create_task(store._database.write(lambda session: gate.wait()))
        await asyncio.sleep(0.05)
        calls = [
            store.queue.insert(new(), at=None),
            store._database.write(broken),
            store.queue.insert(new(), at=None),
        ]
        waiting = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.05)
        gate.set()
        await blocker
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, failed, second = run(scenario())

    assert (first, second) == ([1], [2])
    assert isinstance(failed, ValueError)
    lanes = run(
        store._database.read(lambda s: s._connection.execute("SELECT queue FROM priority_levels").fetchall())
    )
    assert [row["queue"] for row in lanes] == ["default"]


def test_a_cancelled_caller_does_not_stop_the_work(opened: Any, run: Any, clock: ManualClock) -> None:
    store = opened()
    gate = threading.Event()
    run(store.queue.insert(new(), at=clock.stamp()))
    run(store.processes.join(member(), lease=LEASE, at=clock.stamp()))

    async def scenario() -> list[Any]:
        blocker = asyncio.create_task(store._database.write(lambda session: gate.wait()))
        claiming = asyncio.create_task(
            store.queue.claim(7, queues=["default"], tasks=["work"], limit=1, at=clock.stamp())
        )
        await asyncio.sleep(0.05)
        claiming.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claiming
        held = asyncio.create_task(store.queue.held(7, at=clock.stamp()))
        await asyncio.sleep(0.05)
        gate.set()
        await blocker
        return list(await held)

    assert [claim.job_id for claim in run(scenario())] == [1]


def test_work_of_an_event_loop_that_is_gone_is_done(opened: Any, run: Any) -> None:
    store = opened()
    gate = threading.Event()

    async def leave() -> None:
        asyncio.create_task(store._database.write(lambda session: gate.wait()))  # noqa: RUF006
        asyncio.create_task(store.queue.insert(new(), at=None))  # noqa: RUF006
        await asyncio.sleep(0.05)

    asyncio.run(leave())
    gate.set()

    assert run(store.queue.insert(new(), at=None)) == [2]


def test_only_what_must_last_waits_for_the_disk(opened: Any, run: Any, clock: ManualClock) -> None:
    store = opened()
    run(store.processes.join(member(), lease=LEASE, at=clock.stamp()))

    run(store.queue.insert(new(), at=clock.stamp()))
    assert synchronous(store, run) == 2
    [claim] = run(store.queue.claim(7, queues=["default"], tasks=["work"], limit=1, at=clock.stamp()))
    assert synchronous(store, run) == 1
    done = Settlement(job_id=claim.job_id, worker_id=7, fence=claim.fence, verdict=Verdict.SUCCEEDED)
    run(store.queue.settle([done], at=clock.stamp()))
    assert synchronous(store, run) == 2


def test_a_grown_wal_is_checkpointed_by_the_writer(
    opened: Any, path: str, run: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(connection_module, "CHECKPOINT_ABOVE", 100_000)
    store = opened()

    run(store.queue.insert(new(2000, b"x" * 200), at=None))
    run(store._database._writer.run(lambda session: None, durable=False))  # the thread is past it

    assert os.stat(f"{path}-wal").st_size <= 100_000
    assert (
        run(store._database.read(lambda s: s._connection.execute("PRAGMA wal_autocheckpoint").fetchone()[0]))
        == 0
    )


def test_a_checkpoint_that_a_reader_holds_up_is_no_error(
    opened: Any, path: str, run: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(connection_module, "CHECKPOINT_ABOVE", 10_000)
    store = opened()
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM jobs").fetchone()

    run(store.queue.insert(new(500), at=None))
    run(store.queue.insert(new(500), at=None))

    reader.close()
    assert len(run(store.queues.depth(at=None))) == 1


def test_a_full_disk_undoes_the_call_and_the_next_one_works(opened: Any, run: Any) -> None:
    store = opened()
    pages = run(store._database.write(lambda s: s._connection.execute("PRAGMA page_count").fetchone()[0]))

    def limit(session: Session) -> None:
        session._connection.execute(f"PRAGMA max_page_count = {pages + 20}").fetchone()

    run(store._database.write(limit))

    with pytest.raises(StoreFull):
        run(store.queue.insert(new(5000, b"x" * 500), at=None))

    assert run(store.queue.insert(new(), at=None)) == [1]


def test_one_call_too_big_for_the_disk_does_not_cost_its_neighbours_theirs(opened: Any, run: Any) -> None:
    store = opened()
    gate = threading.Event()
    pages = run(store._database.write(lambda s: s._connection.execute("PRAGMA page_count").fetchone()[0]))

    def limit(session: Session) -> None:
        session._connection.execute(f"PRAGMA max_page_count = {pages + 20}").fetchone()

    async def scenario() -> list[object]:
        await store._database.write(limit)
        blocker = asyncio.create_task(store._database.write(lambda session: gate.wait()))
        await asyncio.sleep(0.05)
        calls = [
            store.queue.insert(new(), at=None),
            store.queue.insert(new(5000, b"x" * 500), at=None),
            store.queue.insert(new(), at=None),
        ]
        waiting = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0.05)
        gate.set()
        await blocker
        return await asyncio.gather(*waiting, return_exceptions=True)

    first, big, second = run(scenario())

    assert (first, second) == ([1], [2])
    assert isinstance(big, StoreFull)


def test_ids_are_never_used_again(opened: Any, run: Any) -> None:
    store = opened()
    ids = run(store.queue.insert(new(3), at=None))

    run(store.jobs.cancel(ids, at=None))

    assert run(store.queue.insert(new(), at=None)) == [4]


def test_several_processes_on_one_file_lose_and_double_nothing(
    path: str, run: Any, clock: ManualClock
) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        done = pool.starmap(_process, [(path, number) for number in range(4)])
        pool.close()
        pool.join()
    store = SQLiteStore(path, clock)
    depth = run(store.queues.depth(at=None))
    run(store.close())

    settled = [job_id for ids in done for job_id in ids]
    left = depth[0].ready if depth else 0
    assert len(settled) == len(set(settled))
    assert len(settled) + left == 400


def _process(path: str, number: int) -> list[int]:
    return asyncio.run(_insert_and_drain(path, number))


async def _insert_and_drain(path: str, number: int) -> list[int]:
    store = SQLiteStore(path, SystemClock())
    worker_id = number + 1
    done: list[int] = []
    try:
        await store.migrate()
        await store.processes.join(member(worker_id), lease=LEASE, at=None)
        for _ in range(10):
            await store.queue.insert(new(10), at=None)
        while claims := await store.queue.claim(
            worker_id, queues=["default"], tasks=["work"], limit=7, at=None
        ):
            ended = [
                Settlement(job_id=c.job_id, worker_id=worker_id, fence=c.fence, verdict=Verdict.SUCCEEDED)
                for c in claims
            ]
            refused = await store.queue.settle(ended, at=None)
            done += [c.job_id for c in claims if c.job_id not in refused]
    finally:
        await store.close()
    return done
