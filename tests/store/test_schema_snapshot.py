"""Migrations from zero make exactly the schema that was reviewed; `make schema` rewrites the files."""

from __future__ import annotations

from tests.support.schema import STORES, fresh_postgres_schema, fresh_sqlite_schema


def test_sqlite_migrations_make_the_snapshot(tmp_path):
    assert fresh_sqlite_schema(tmp_path) == (STORES / "sqlite" / "schema.sql").read_text(encoding="utf-8")


def test_postgres_migrations_make_the_snapshot(new_database):
    made = fresh_postgres_schema(new_database(migrated=False))

    assert made == (STORES / "postgres" / "schema.sql").read_text(encoding="utf-8")
