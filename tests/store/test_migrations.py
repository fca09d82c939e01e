"""Migrations: one after the other, each a transaction, and never from another text or by an older version.

What is tried here comes after the migrations that there are, and is made for the test.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mainspring.errors import SchemaMismatch, StoreError
from mainspring.model.job import NewJob
from mainspring.store.migrations import Migration, Schema, migrations
from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock

Open = Callable[[], Any]


@pytest.fixture
def opened(empty_database_url: str, run: Any, clock: ManualClock) -> Any:
    """Opens stores of one empty database."""
    stores = []

    def open_one() -> Any:
        stores.append(open_store(empty_database_url, clock=clock))
        return stores[-1]

    yield open_one
    for store in stores:
        run(store.close())


@pytest.fixture
def there_are(backend: str) -> list[Migration]:
    """The migrations of this code."""
    return migrations(f"mainspring.store.{'sqlite' if backend == 'sqlite' else 'postgres'}")


@pytest.fixture
def later(backend: str, there_are: list[Migration]) -> Callable[..., Migration]:
    """Makes a migration that comes after so many: its text is said without a schema."""

    def make(place: int, *statements: str) -> Migration:
        version = len(there_are) + place
        schema = "" if backend == "sqlite" else "mainspring."
        sql = "".join(f"{each.format(schema)};\n" for each in statements)
        return Migration(version=version, name=f"{version:04}_later", sql=sql)

    return make


def schema(store: Any, known: Sequence[Migration]) -> Schema:
    return Schema(store._base, known)


TABLE = "CREATE TABLE {}later (id INT NOT NULL PRIMARY KEY)"
COLUMN = "ALTER TABLE {}later ADD COLUMN name TEXT"
BROKEN = "INSERT INTO {}nowhere VALUES (1)"


def test_they_are_applied_in_order_to_a_store_that_is_in_use(
    opened: Open, run: Any, clock: ManualClock, there_are: list[Migration], later: Any
) -> None:
    store, steps = opened(), [later(1, TABLE), later(2, COLUMN)]
    assert run(store.migrate()) == [each.name for each in there_are]
    [job_id] = run(store.queue.insert([NewJob(task="t", payload=b"kept")], at=clock.stamp()))
    of_database = run(store.identity())

    upgraded = schema(store, [*there_are, *steps])
    with pytest.raises(SchemaMismatch) as caught:
        run(upgraded.verify())
    assert (caught.value.found, caught.value.needed) == (len(there_are), len(there_are) + 2)

    assert run(upgraded.migrate()) == [each.name for each in steps]
    assert run(upgraded.migrate()) == []
    run(upgraded.verify())
    assert run(store.jobs.get(job_id, at=clock.stamp())).payload == b"kept"
    assert run(store.identity()) == of_database


def test_the_id_of_a_database_is_made_with_its_schema(opened: Open, run: Any) -> None:
    store = opened()
    run(store.migrate())

    found = run(store.identity())
    assert str(uuid.UUID(found)) == found
    assert uuid.UUID(found).version == 4


def test_of_one_that_fails_nothing_remains_and_those_before_it_stay(
    opened: Open, run: Any, there_are: list[Migration], later: Any
) -> None:
    store, first = opened(), later(1, TABLE)
    with pytest.raises((StoreError, SchemaMismatch)):
        run(schema(store, [*there_are, first, later(2, COLUMN, BROKEN)]).migrate())
    run(schema(store, [*there_are, first]).verify())

    # The column would be there already.
    assert run(schema(store, [*there_are, first, later(2, COLUMN)]).migrate()) == [later(2).name]


def test_a_migrator_that_was_killed_is_followed_by_one_that_goes_on(
    opened: Open, run: Any, there_are: list[Migration], later: Any
) -> None:
    steps = [later(1, TABLE), later(2, COLUMN), later(3, "DROP TABLE {}later")]

    async def story() -> list[str]:
        killed, store = opened(), opened()
        within, done, hangs = killed._base.within, 0, asyncio.Event()

        async def hanging(what: str, work: Any, **how: Any) -> Any:
            nonlocal done
            if done == len(there_are) + 1:
                hangs.set()
                await asyncio.Event().wait()
            done += 1
            return await within(what, work, **how)

        killed._base.within = hanging
        migrating = asyncio.create_task(schema(killed, [*there_are, *steps]).migrate())
        await asyncio.wait_for(hangs.wait(), 40)
        migrating.cancel()
        await asyncio.wait([migrating])
        return await schema(store, [*there_are, *steps]).migrate()

    assert run(story()) == [each.name for each in steps[1:]]


def test_any_number_may_migrate_at_once(
    opened: Open, run: Any, there_are: list[Migration], later: Any
) -> None:
    known = [*there_are, later(1, TABLE), later(2, COLUMN)]
    schemas = [schema(opened(), known) for _ in range(4)]

    async def all_at_once() -> list[list[str]]:
        return await asyncio.gather(*(each.migrate() for each in schemas))

    applied = [name for each in run(all_at_once()) for name in each]
    assert sorted(applied) == [each.name for each in known]
    for each in schemas:
        run(each.verify())


def test_a_text_that_was_edited_is_refused(
    opened: Open, run: Any, there_are: list[Migration], later: Any
) -> None:
    store = opened()
    run(schema(store, [*there_are, later(1, TABLE)]).migrate())

    edited = schema(store, [*there_are, later(1, TABLE, COLUMN), later(2, COLUMN)])
    for call in (edited.migrate, edited.verify):
        with pytest.raises(SchemaMismatch, match="_later was applied from another text"):
            run(call())


def test_a_store_of_a_newer_version_is_refused(
    opened: Open, run: Any, there_are: list[Migration], later: Any
) -> None:
    store = opened()
    run(schema(store, [*there_are, later(1, TABLE)]).migrate())

    for call in (store.migrate, store.verify):
        with pytest.raises(SchemaMismatch) as caught:
            run(call())
        assert (caught.value.found, caught.value.needed) == (len(there_are) + 1, len(there_are))
