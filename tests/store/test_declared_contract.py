"""Declaring many schedules: what is as declared costs a look and nothing else, what differs is written in
short transactions, and any number of processes may do it at once."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from itertools import chain
from typing import Any

import asyncpg
import msgspec
import pytest

from mainspring.clock import SystemClock
from mainspring.model.limit import LimitKey
from mainspring.model.schedule import Misfire, NewSchedule, Overlap
from mainspring.store.declaring import BATCH
from mainspring.store.opener import open_store
from mainspring.store.store import Store
from tests.support.desk import Desk

HOUR = timedelta(hours=1)
ROWS = {
    "schedules": "name",
    "specs": "trigger",
    "schedule_versions": "name",
    "limit_keys": "key",
    "limit_sets": "limit_keys",
    "priority_levels": "priority",
}
OTHERWISE: dict[str, object] = {
    "task": "other",
    "trigger": "every hour",
    "payload": b'{"n":1}',
    "queue": "other",
    "priority": 3,
    "max_attempts": 7,
    "misfire": Misfire.ALL,
    "catch_up": 2 * HOUR,
    "overlap": Overlap.ALLOW,
    "overlap_limit": 4,
    "offset": timedelta(seconds=5),
    "jitter": timedelta(seconds=6),
    "max_fires": 9,
    "limit_keys": (LimitKey(name="other", concurrency=1),),
    "expires": 3 * HOUR,
    "expect_start_within": 4 * HOUR,
    "expect_finish_by": 5 * HOUR,
}


@asynccontextmanager
async def stores(url: str, count: int) -> AsyncIterator[list[Store]]:
    opened = [open_store(url, clock=SystemClock()) for _ in range(count)]
    try:
        yield opened
    finally:
        for store in opened:
            await store.close()


def declared(count: int, **fields: Any) -> list[NewSchedule]:
    return [
        NewSchedule(
            **{
                "name": f"s{number:05}",
                "task": f"t{number % 3}",
                "trigger": f"every {number % 50} minutes",
                "payload": b"{}",
                "limit_keys": (LimitKey(name="tenant", key=str(number % 20), concurrency=1),)
                if number % 2
                else (),
            }
            | fields
        )
        for number in range(count)
    ]


async def postgres_rows(url: str) -> dict[str, object]:
    """Every row with the transactions that wrote and locked it."""
    connection = await asyncpg.connect(url)
    try:
        return {
            table: await connection.fetch(
                f"SELECT ctid::text, xmin::text, xmax::text, {column} FROM mainspring.{table} ORDER BY ctid"
            )
            for table, column in ROWS.items()
        }
    finally:
        await connection.close()


def sqlite_changes(looker: sqlite3.Connection) -> int:
    """Rises when another connection has committed a change of the file."""
    [changes] = looker.execute("PRAGMA data_version").fetchone()
    return int(changes)


def test_schedules_that_are_as_declared_are_neither_written_nor_locked(
    backend: str, database_url: str, run: Any
) -> None:
    news = declared(BATCH + 100)

    async def story() -> None:
        async with stores(database_url, 1) as [store]:
            assert len(await store.schedules.put(news, at=None)) == len(news)
        async with stores(database_url, 1) as [store]:
            assert await store.schedules.put(news[:1], at=None) == []  # what a first call of all asks for
            if backend == "postgres":
                before = await postgres_rows(database_url)
                assert await store.schedules.put(news, at=None) == []
                assert await postgres_rows(database_url) == before
                return
            with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as looker:
                before = sqlite_changes(looker)
                assert await store.schedules.put(news, at=None) == []
                assert sqlite_changes(looker) == before
                assert await store.schedules.put([msgspec.structs.replace(news[0], priority=1)], at=None)
                assert sqlite_changes(looker) != before

    run(story())


def test_schedules_that_are_as_declared_wait_for_nobody(postgres_url: str, run: Any) -> None:
    news = declared(50)

    async def story() -> None:
        async with stores(postgres_url, 1) as [store]:
            await store.schedules.put(news, at=None)
            connection = await asyncpg.connect(postgres_url)
            try:
                async with asyncio.timeout(4), connection.transaction():  # less than the lock timeout
                    for table in ROWS:
                        await connection.execute(f"LOCK TABLE mainspring.{table} IN EXCLUSIVE MODE")
                    assert await store.schedules.put(news, at=None) == []
            finally:
                await connection.close()

    run(story())


def test_what_differs_is_written_in_short_transactions(postgres_url: str, run: Any) -> None:
    """The last row is locked by somebody else: what comes before it is on record meanwhile."""
    news = declared(2 * BATCH + 10, limit_keys=())
    changed = [msgspec.structs.replace(each, priority=5) for each in news]
    count = "SELECT count(*) FROM mainspring.schedules WHERE version = 2"

    async def story() -> None:
        async with stores(postgres_url, 1) as [store]:
            await store.schedules.put(news, at=None)
            holder, looker = await asyncpg.connect(postgres_url), await asyncpg.connect(postgres_url)
            try:
                hold = holder.transaction()
                await hold.start()
                await holder.execute(
                    "SELECT 1 FROM mainspring.schedules WHERE name = $1 FOR SHARE", news[-1].name
                )
                put = asyncio.create_task(store.schedules.put(changed, at=None))
                async with asyncio.timeout(4):
                    while await looker.fetchval(count) < 2 * BATCH:
                        assert not put.done()
                await hold.rollback()

                assert len(await put) == len(changed)
                assert await looker.fetchval(count) == len(changed)
            finally:
                await holder.close()
                await looker.close()

    run(story())


def test_several_that_declare_the_same_at_once_all_succeed(database_url: str, run: Any) -> None:
    """Nobody is told to try again, and each schedule is new to one of them."""
    news = declared(2 * BATCH + 50)

    async def story() -> None:
        async with stores(database_url, 4) as four:
            for said in (news, [msgspec.structs.replace(each, payload=b'{"n":2}') for each in news]):
                # One of them in another order, and one with schedules of its own.
                orders = [said, said[::-1], said[100:], said]
                written = await asyncio.gather(
                    *(store.schedules.put(order, at=None) for store, order in zip(four, orders, strict=True))
                )

                assert sorted(chain.from_iterable(written)) == [each.name for each in said]
            found = await four[0].schedules.all()
            assert [each.name for each in found] == [each.name for each in news]
            assert {(each.version, each.payload) for each in found} == {(2, b'{"n":2}')}
            assert len(await four[0].schedules.versions(news[7].name)) == 2

    run(story())


@pytest.mark.parametrize("field", sorted(OTHERWISE))
def test_whatever_is_declared_otherwise_is_written(desk: Desk, field: str) -> None:
    assert desk.schedule_all(desk.new_schedule()) == ["s"]
    other = msgspec.structs.replace(desk.new_schedule(), **{field: OTHERWISE[field]})

    assert desk.schedule_all(other) == ["s"]
    assert desk.schedule_all(other) == []

    [found] = desk.schedules()
    assert found.version == 2
    if field == "limit_keys":
        assert found.limit_set_id is not None
    else:
        assert getattr(found, field) == OTHERWISE[field]
    assert [each.schedule for each in desk.versions("s")][-1] == found


def test_every_field_of_a_declaration_is_asked_about() -> None:
    assert set(NewSchedule.__struct_fields__) - {"name", "next_at", "following_at"} == set(OTHERWISE)


def test_limits_that_are_not_spoken_of_stay(desk: Desk) -> None:
    limit_keys = (LimitKey(name="g", concurrency=2),)
    desk.schedule_all(desk.new_schedule(limit_keys=limit_keys))

    assert desk.schedule_all(desk.new_schedule()) == []
    assert desk.schedule_all(desk.new_schedule(priority=2)) == ["s"]
    [kept] = desk.schedules()
    assert kept.limit_set_id is not None
    assert desk.schedule_all(desk.new_schedule(priority=2, limit_keys=())) == ["s"]
    [freed] = desk.schedules()
    assert freed.limit_set_id is None


def test_another_size_of_a_limit_is_no_change_of_its_schedules(desk: Desk) -> None:
    desk.schedule_all(desk.new_schedule(limit_keys=(LimitKey(name="g", concurrency=2),)))

    assert desk.schedule_all(desk.new_schedule(limit_keys=(LimitKey(name="g", concurrency=3),))) == []

    [limit_key] = desk.limit_keys()
    assert limit_key.limit_key.concurrency == 3


def test_of_a_name_that_is_said_twice_the_last_counts(desk: Desk) -> None:
    names = desk.schedule_all(desk.new_schedule(priority=1), desk.new_schedule(priority=2))

    assert names == ["s"]
    [found] = desk.schedules()
    assert (found.priority, found.version) == (2, 1)
