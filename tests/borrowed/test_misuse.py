"""What cannot be part of a transaction is refused, with what to do instead."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest
from sqlalchemy import create_engine

from mainspring import Mainspring
from mainspring.errors import InvalidArgument, SchemaMismatch, UsageError
from tests.borrowed.conftest import Shop
from tests.support.django import configured


@pytest.mark.parametrize("tx", [object(), 7, [], asyncio.Lock()], ids=lambda tx: type(tx).__name__)
def test_what_is_no_connection_is_refused(sqlite_shop: Shop, tx: object) -> None:
    with pytest.raises(InvalidArgument, match=r"tx: expected a connection with a transaction: psycopg, "):
        sqlite_shop.bill.using(tx=tx).enqueue("ada")


def test_a_psycopg_connection_that_commits_each_statement_is_refused(postgres_shop: Shop) -> None:
    with (
        psycopg.connect(postgres_shop.url, autocommit=True) as connection,
        pytest.raises(UsageError, match=r"autocommit mode; use it inside `with connection.transaction"),
    ):
        postgres_shop.bill.using(tx=connection).enqueue("ada")

    assert postgres_shop.jobs() == []


def test_an_asyncpg_connection_outside_a_transaction_is_refused(postgres_shop: Shop, run: Any) -> None:
    async def put() -> None:
        connection = await asyncpg.connect(postgres_shop.url)
        try:
            await postgres_shop.bill.using(tx=connection).aenqueue("ada")
        finally:
            await connection.close()

    with pytest.raises(UsageError, match=r"asyncpg connection; use it inside `async with"):
        run(put())

    assert postgres_shop.jobs() == []


def test_a_sqlite3_connection_that_commits_each_statement_is_refused(sqlite_shop: Shop) -> None:
    with (
        closing(sqlite3.connect(sqlite_shop.path, isolation_level=None)) as connection,
        pytest.raises(UsageError, match=r"begin one first, best with BEGIN IMMEDIATE"),
    ):
        sqlite_shop.bill.using(tx=connection).enqueue("ada")

    assert sqlite_shop.jobs() == []


@pytest.mark.parametrize("how", ["engine", "option"])
def test_sqlalchemy_in_autocommit_is_refused(postgres_shop: Shop, how: str) -> None:
    url = postgres_shop.url.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(url, isolation_level="AUTOCOMMIT") if how == "engine" else create_engine(url)
    try:
        with engine.connect() as connection:
            if how == "option":
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            with pytest.raises(UsageError, match="isolation level is AUTOCOMMIT"):
                postgres_shop.bill.using(tx=connection).enqueue("ada")
    finally:
        engine.dispose()

    assert postgres_shop.jobs() == []


def test_django_outside_of_atomic_is_refused(sqlite_shop: Shop) -> None:
    with (
        configured(sqlite_shop.url) as alias,
        pytest.raises(UsageError, match=r"use it inside `with transaction\.atomic"),
    ):
        sqlite_shop.bill.using(tx=alias).enqueue("ada")

    assert sqlite_shop.jobs() == []


def test_an_alias_that_django_does_not_know_is_refused(sqlite_shop: Shop) -> None:
    with (
        configured(sqlite_shop.url),
        pytest.raises(InvalidArgument, match=r"one of Django's databases: .*shop"),
    ):
        sqlite_shop.bill.using(tx="elsewhere").enqueue("ada")


def test_a_blocking_call_refuses_a_connection_that_is_awaited(postgres_shop: Shop, run: Any) -> None:
    async def put() -> None:
        connection = await asyncpg.connect(postgres_shop.url)
        try:
            async with connection.transaction():
                postgres_shop.bill.using(tx=connection).enqueue("ada")
        finally:
            await connection.close()

    with pytest.raises(UsageError, match=r"asyncpg's Connection is awaited: await aenqueue"):
        run(put())


def test_an_awaited_call_refuses_a_connection_that_blocks(sqlite_shop: Shop, run: Any) -> None:
    with (
        closing(sqlite3.connect(sqlite_shop.path)) as connection,
        pytest.raises(UsageError, match=r"sqlite3's Connection blocks: call enqueue"),
    ):
        run(sqlite_shop.bill.using(tx=connection).aenqueue("ada"))


def test_a_connection_to_another_kind_of_database_is_refused(sqlite_shop: Shop, postgres_shop: Shop) -> None:
    with (
        psycopg.connect(postgres_shop.url) as to_postgres,
        pytest.raises(InvalidArgument, match="which is SQLite, not postgresql"),
    ):
        sqlite_shop.bill.using(tx=to_postgres).enqueue("ada")
    with (
        closing(sqlite3.connect(sqlite_shop.path)) as to_sqlite,
        pytest.raises(InvalidArgument, match="which is PostgreSQL, not sqlite"),
    ):
        postgres_shop.bill.using(tx=to_sqlite).enqueue("ada")


def test_a_connection_to_another_file_is_refused(sqlite_shop: Shop, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "other.db")) as connection,
        pytest.raises(InvalidArgument, match=r"app's own database, .*shop\.db, got .*other\.db"),
    ):
        sqlite_shop.bill.using(tx=connection).enqueue("ada")


def test_the_same_file_by_another_name_is_taken(sqlite_shop: Shop, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(sqlite_shop.path)

    with closing(sqlite3.connect(tmp_path / "link.db")) as connection, connection:
        sqlite_shop.bill.using(tx=connection).enqueue("ada")

    assert len(sqlite_shop.jobs()) == 1


def test_a_database_in_memory_is_nobody_elses(sqlite_shop: Shop) -> None:
    app = Mainspring("sqlite://:memory:")
    bill = app.task(name="bill")(lambda tenant: None)

    with (
        closing(sqlite3.connect(sqlite_shop.path)) as connection,
        pytest.raises(InvalidArgument, match="app's own database, :memory:"),
    ):
        bill.using(tx=connection).enqueue("ada")


def test_a_file_that_was_never_migrated_is_told_apart(tmp_path: Path) -> None:
    bill = Mainspring(f"sqlite:///{tmp_path / 'new.db'}").task(name="bill")(lambda tenant: None)

    with (
        closing(sqlite3.connect(tmp_path / "new.db")) as connection,
        pytest.raises(SchemaMismatch, match=r"at version 0, .* run `mainspring db migrate`"),
    ):
        bill.using(tx=connection).enqueue("ada")


def test_a_postgres_database_that_was_never_migrated_is_told_apart(new_database: Any, run: Any) -> None:
    url = new_database(migrated=False)
    bill = Mainspring(url).task(name="bill")(lambda tenant: None)

    async def put() -> None:
        connection = await asyncpg.connect(url)
        try:
            async with connection.transaction():
                await bill.using(tx=connection).aenqueue("ada")
        finally:
            await connection.close()

    with pytest.raises(SchemaMismatch, match="a database without it"), psycopg.connect(url) as connection:
        bill.using(tx=connection).enqueue("ada")
    with pytest.raises(SchemaMismatch, match="a database without it"):
        run(put())


def test_a_schema_older_than_the_code_is_refused_and_a_newer_one_is_not(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        connection.execute("INSERT INTO mainspring.migrations VALUES (999, 'later', 'x')")
        postgres_shop.bill.using(tx=connection).enqueue("ada")
    with psycopg.connect(postgres_shop.url) as connection:
        connection.execute("DELETE FROM mainspring.migrations WHERE version > 1")
        connection.execute("UPDATE mainspring.migrations SET version = 0")
        with pytest.raises(SchemaMismatch, match="at version 0, this code needs"):
            postgres_shop.bill.using(tx=connection).enqueue("ada")
        connection.rollback()

    assert len(postgres_shop.jobs()) == 1


def test_a_prepared_job_takes_its_transaction_where_it_is_enqueued(sqlite_shop: Shop) -> None:
    with pytest.raises(InvalidArgument, match="tx= where the batch is enqueued"):
        sqlite_shop.bill.using(tx=object()).job("ada")


def test_an_error_of_the_callers_connection_stays_its_drivers(postgres_shop: Shop) -> None:
    with psycopg.connect(postgres_shop.url) as connection:
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM nothing")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            postgres_shop.bill.using(tx=connection).enqueue("ada")
        connection.rollback()
