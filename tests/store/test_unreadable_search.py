"""The search for rows that cannot be read: beside writers, one at a time, and not again and again."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from mainspring.errors import StoreError
from mainspring.model.health import UnreadableRow
from mainspring.model.job import NewJob
from mainspring.store.health import LOOK_AGAIN
from mainspring.store.opener import open_store
from mainspring.store.sqlite.store import SQLiteStore
from mainspring.testing.clock import ManualClock
from tests.support.planting import Soil


class Counting(SQLiteStore):
    """A store that counts its searches and may be slow to answer one."""

    def __init__(self, path: str, clock: ManualClock, takes: float = 0.0) -> None:
        super().__init__(path, clock)
        self.searches, self.takes = 0, takes
        self._search = self.health.set_aside
        self.health.set_aside = self._set_aside  # type: ignore[method-assign]

    async def _set_aside(self) -> list[UnreadableRow]:
        self.searches += 1
        found = await self._search()
        asyncio.get_running_loop()._pass(self.takes)  # type: ignore[attr-defined]
        return found


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock can be moved."""

    moved = 0.0

    def time(self) -> float:
        return super().time() + self.moved

    def _pass(self, seconds: float) -> None:
        self.moved += seconds


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_search_that_finds_nothing_does_not_wait_for_a_writer(
    database_url: str, run: Any, clock: ManualClock
) -> None:
    store = open_store(database_url, clock=clock)
    path = database_url.removeprefix("sqlite:///")
    try:
        run(store.queue.insert([NewJob(task="t", payload=b"{}")], at=clock.stamp()))
        with closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            assert run(asyncio.wait_for(store.health.set_aside(), 2)) == []
            writer.execute("ROLLBACK")
    finally:
        run(store.close())


def test_what_is_found_is_moved_and_nothing_else(database_url: str, run: Any, clock: ManualClock) -> None:
    store = open_store(database_url, clock=clock)
    try:
        fine = run(store.queue.insert([NewJob(task="t", payload=b"{}")], at=clock.stamp()))
        soil = Soil(database_url)
        early = "-infinity" if soil.postgres else -(2**63)
        now = "2030-01-01 00:00:00+00" if soil.postgres else 1_893_456_000_000_000
        lease = {"token": 1, "holder_id": 1, "holder": "x", "acquired_at": now}
        soil.plant("jobs", "id", {}, previous_at=early)
        soil.plant("leases", None, lease, name="good", expires_at=now)
        soil.plant("leases", None, lease, name="bad", expires_at=early)
        moved = run(store.health.set_aside())
        assert sorted((row.table, row.key) for row in moved) == [("jobs", "900001"), ("leases", "bad")]
        assert [name for (name,) in soil.rows("SELECT name FROM leases")] == ["good"]
        assert [job_id for (job_id,) in soil.rows("SELECT id FROM jobs")] == fine
        assert run(store.health.set_aside()) == []
    finally:
        run(store.close())


def test_calls_that_fail_together_share_a_search(tmp_path: Any, clock: ManualClock) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        store = Counting(str(tmp_path / "m.db"), clock)
        try:
            runner.run(store.migrate())

            async def together() -> list[bool]:
                return await asyncio.gather(*(store.health.left_out(StoreError("broken")) for _ in range(5)))

            assert runner.run(together()) == [True] * 5
            assert store.searches == 1
        finally:
            runner.run(store.close())


def test_after_a_long_search_that_found_nothing_there_is_a_pause(tmp_path: Any, clock: ManualClock) -> None:
    with asyncio.Runner(loop_factory=Loop) as runner:
        store = Counting(str(tmp_path / "m.db"), clock, takes=10 * LOOK_AGAIN)
        try:
            runner.run(store.migrate())
            assert runner.run(store.health.left_out(StoreError("broken")))
            assert not runner.run(store.health.left_out(StoreError("broken")))
            runner.get_loop()._pass(LOOK_AGAIN)  # type: ignore[attr-defined]
            assert runner.run(store.health.left_out(StoreError("broken")))
            assert store.searches == 2
        finally:
            runner.run(store.close())
