"""Transactions of handlers on an SQLite file: one at a time in a process, and everybody has a turn."""

from __future__ import annotations

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mainspring.errors import StoreUnavailable
from mainspring.model.job import Claim, NewJob
from mainspring.model.process import NewProcess, Role
from mainspring.model.run import Verdict
from mainspring.store.opener import open_store
from mainspring.store.sqlite import borrower
from mainspring.store.sqlite import connection as sqlite
from tests.support.desk import DAY, settlement


def test_transactions_of_many_handlers_at_once_all_have_their_turn(
    run: Any, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each has the one lock of the file for longer than anybody waits for it.
    monkeypatch.setattr(sqlite, "LOOKS", 0)
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT", timedelta(milliseconds=10))
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}", clock=clock)

    async def pay(claim: Claim) -> bool:
        lent = await store.effects.lend()
        await lent.connection.execute("INSERT INTO orders VALUES (?)", claim.job_id)
        await asyncio.sleep(0.02)
        return await lent.commit(settlement(claim, Verdict.SUCCEEDED), at=clock.stamp())

    async def story() -> None:
        await store.migrate()
        await store.processes.join(NewProcess(id=1, role=Role.WORKER, name="w"), lease=DAY, at=clock.stamp())
        await store.queue.insert([NewJob(task="pay", payload=b"{}")] * 40, at=clock.stamp())
        claims = await store.queue.claim(1, queues=["default"], tasks=["pay"], limit=40, at=clock.stamp())
        assert await asyncio.gather(*(pay(claim) for claim in claims)) == [True] * 40
        await store.close()

    with sqlite3.connect(tmp_path / "jobs.db") as own:
        own.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    own.close()
    run(story())


def test_a_turn_that_does_not_come_is_an_error_and_the_next_one_does(
    run: Any, clock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(borrower, "TURN_WITHIN", timedelta(milliseconds=20))
    store = open_store(f"sqlite:///{tmp_path / 'jobs.db'}", clock=clock)

    async def story() -> None:
        await store.migrate()
        first = await store.effects.lend()
        with pytest.raises(StoreUnavailable, match="transactions of other handlers kept"):
            await store.effects.lend()
        await first.rollback()
        second = await store.effects.lend()
        await second.rollback()
        await second.rollback()  # it gives back no turn but its own
        third = await store.effects.lend()
        with pytest.raises(StoreUnavailable):
            await store.effects.lend()
        await third.rollback()
        await store.close()

    run(story())
