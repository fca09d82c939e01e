"""Schedulers that start together with ten thousand declared schedules, and what a redeploy of a hundred
thousand asks of a store."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from benchmarks.guard.relay import Relay, relayed
from mainspring.clock import SystemClock
from mainspring.model.schedule import NewSchedule
from mainspring.store.declaring import BATCH
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from tests.e2e.many_target import MANY, app
from tests.support.processes import Process, Site, until

pytestmark = pytest.mark.e2e

TARGET = Path(__file__).with_name("many_target.py")
TOGETHER = 3
VERY_MANY = 100_000


def test_schedulers_that_start_together_with_ten_thousand_schedules_all_live(site: Site) -> None:
    first = _started(site, "first")

    assert Counter(each.version for each in site.ask(site.store.schedules.all())) == {1: MANY}
    assert sum(each.log.count("schedules written: ") for each in first) >= 1
    assert all(len(line) < 1000 for each in first for line in each.log.splitlines())
    for each in first:
        each.kill()

    again = _started(site, "again")  # a redeploy of the same code

    assert Counter(each.version for each in site.ask(site.store.schedules.all())) == {1: MANY}
    assert not any(each.says("schedules written") for each in again)


def _started(site: Site, when: str) -> list[Process]:
    """As many as start together, each with its lease."""
    together = [
        site.start("scheduler", f"{when}-{number}", target=TARGET, joined=False) for number in range(TOGETHER)
    ]
    for each in together:
        until(each.joined, f"{each.name} to join")
    return together


def test_an_unchanged_redeploy_of_a_hundred_thousand_schedules_writes_nothing(
    database_url: str, run: Any, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    """Counted, not timed: one look for each batch, and no row."""
    with _meter(database_url, monkeypatch) as meter:
        first = run(_deploy(meter.url, _declared()))
        assert len(first) == VERY_MANY
        asked, written = meter.statements, meter.written()
        assert written >= VERY_MANY  # this is seen

        again = run(_deploy(meter.url, _declared()))

        asked, written = meter.statements - asked, meter.written() - written
    record_property("statements", asked)
    record_property("rows written", written)
    assert again == []
    assert written == 0
    # On SQLite a look begins and ends a transaction.
    assert (
        VERY_MANY // BATCH <= asked <= VERY_MANY // BATCH * (1 if isinstance(meter, OfPostgres) else 3) + 10
    )


def _declared() -> list[NewSchedule]:
    """What code says at every start: ten times what the app declares, under other names."""
    now = SystemClock().now()
    each = [declared.new_schedule(now) for declared in app._registry.schedules.values()]
    times = range(VERY_MANY // MANY)
    return [msgspec.structs.replace(one, name=f"{one.name}-{n}") for n in times for one in each]


async def _deploy(url: str, declared: list[NewSchedule]) -> list[str]:
    store: Store = open_store(url, clock=SystemClock())
    try:
        return await store.schedules.put(declared, at=None)
    finally:
        await store.close()


class OfPostgres:
    """Statements by the wire, rows by what the server's sessions tell it when they end."""

    def __init__(self, direct: str, relay: Relay) -> None:
        self.url, self._direct, self._relay = relay.url, direct, relay

    @property
    def statements(self) -> int:
        return self._relay.statements

    def written(self) -> int:
        until(lambda: self._ask(_SESSIONS) == 0, "the store's sessions to end")
        return self._ask("SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables")

    def _ask(self, question: str) -> int:
        async def ask() -> int:
            connection = await asyncpg.connect(self._direct)
            try:
                return int(await connection.fetchval(question))
            finally:
                await connection.close()

        return asyncio.run(ask())


_SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


class OfSqlite:
    """Both by the connections themselves."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._run: list[str] = []

    @property
    def statements(self) -> int:
        return len(self._run)

    def written(self) -> int:
        verbs = Counter(each.split(maxsplit=1)[0].upper() for each in self._run)
        return sum(verbs[verb] for verb in ("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH"))

    def watch(self, connection: sqlite3.Connection) -> sqlite3.Connection:
        connection.set_trace_callback(self._run.append)
        return connection


@contextmanager
def _meter(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[OfPostgres | OfSqlite]:
    if url.startswith("postgresql:"):
        with relayed(url) as relay:
            yield OfPostgres(url, relay)
        return
    meter, connect = OfSqlite(url), sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **how: meter.watch(connect(*args, **how)))
    yield meter
