"""`mainspring.enqueue` in SQL: for every language and for triggers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from mainspring.tasks.payload import decode
from tests.borrowed.conftest import Shop


@pytest.fixture
def connection(postgres_shop: Shop) -> Any:
    with psycopg.connect(postgres_shop.url, autocommit=True) as connection:
        yield connection


def test_a_task_and_its_arguments_are_enough(connection: Any, postgres_shop: Shop) -> None:
    [job_id] = connection.execute(
        """SELECT mainspring.enqueue('invoice', '{"args":[7],"kwargs":{"month":"2026-10"}}')"""
    ).fetchone()
    [job] = postgres_shop.jobs()

    assert (job.id, job.task, job.queue, job.priority, job.max_attempts) == (
        job_id,
        "invoice",
        "default",
        0,
        1,
    )
    assert decode(job.payload) == ([7], {"month": "2026-10"})


def test_every_option_is_kept(connection: Any, postgres_shop: Shop) -> None:
    connection.execute(
        "SELECT mainspring.enqueue('invoice', queue => 'mail', priority => -100,"
        " delay => '10 minutes', max_attempts => 1000)"
    )
    connection.execute("SELECT mainspring.enqueue('invoice', run_at => '2031-01-01Z')")
    delayed, fixed = postgres_shop.jobs()

    assert (delayed.queue, delayed.priority, delayed.max_attempts) == ("mail", -100, 1000)
    assert delayed.run_at - delayed.enqueued_at == timedelta(minutes=10)
    assert fixed.run_at == datetime(2031, 1, 1, tzinfo=UTC)
    assert decode(fixed.payload) == ([], {})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("''", "task: expected 1 to 200 ASCII letters"),
        ("'-x'", "task: expected 1 to 200 ASCII letters"),
        ("repeat('x', 201)", "task: expected 1 to 200 ASCII letters"),
        ("NULL", "task: expected 1 to 200 ASCII letters.* got NULL"),
        ("'t', queue => 'a b'", "queue: expected 1 to 200 ASCII letters"),
        ("'t', priority => 101", "priority: expected a whole number from -100 to 100"),
        ("'t', max_attempts => 0", "max_attempts: expected a whole number from 1 to 1000"),
        ("'t', delay => '-1 second'", "delay: expected no less than 0"),
        ("'t', delay => '1 s', run_at => now()", "either delay or run_at, not both"),
        ("'t', run_at => 'infinity'", "a year from 2000 to 2100"),
        ("'t', '[1]'", "payload: expected JSON such as"),
        ("""'t', '{"arguments": []}'""", "payload: expected JSON such as"),
        ("""'t', '{"args": {}}'""", "payload: expected JSON such as"),
        ("'t', jsonb_build_object('args', jsonb_build_array(repeat('x', 300000)))", "at most 262144 bytes"),
    ],
)
def test_what_python_would_refuse_sql_refuses(
    connection: Any, postgres_shop: Shop, arguments: str, complaint: str
) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=complaint):
        connection.execute(f"SELECT mainspring.enqueue({arguments})")

    assert postgres_shop.jobs() == []


def test_a_trigger_enqueues_with_the_row_that_fired_it(connection: Any, postgres_shop: Shop) -> None:
    connection.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    connection.execute(
        "CREATE FUNCTION ordered() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM mainspring.enqueue('invoice', jsonb_build_object('args', jsonb_build_array(NEW.id)));"
        " RETURN NULL; END $$"
    )
    connection.execute("CREATE TRIGGER o AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION ordered()")

    connection.execute("INSERT INTO orders SELECT generate_series(1, 3)")
    with pytest.raises(psycopg.errors.UniqueViolation):
        connection.execute("INSERT INTO orders VALUES (9), (1)")

    assert [decode(job.payload)[0] for job in postgres_shop.jobs()] == [[1], [2], [3]]


def test_workers_are_hinted_when_the_transaction_commits_and_not_before(
    postgres_shop: Shop, run: Any
) -> None:
    async def heard() -> tuple[int, int, int]:
        hints: list[object] = []
        listener, other = await asyncpg.connect(postgres_shop.url), await asyncpg.connect(postgres_shop.url)
        try:
            await listener.add_listener("mainspring", lambda *_: hints.append(1))
            async with other.transaction():
                await postgres_shop.bill.using(tx=other).aenqueue("ada")
                await postgres_shop.bill.using(tx=other).aenqueue("bob")
                await listener.fetchval("SELECT 1")
                before = len(hints)
            await listener.fetchval("SELECT 1")
            after = len(hints)
            async with other.transaction():
                await postgres_shop.bill.using(tx=other, delay="1h").aenqueue("ada")
            await listener.fetchval("SELECT 1")
            return before, after, len(hints)
        finally:
            await listener.close()
            await other.close()

    assert run(heard()) == (0, 1, 1)
