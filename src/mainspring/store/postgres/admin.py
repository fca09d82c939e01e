"""Schema and facts of a PostgreSQL store."""

# ruff: noqa: S608 - the names in statements that are made here are those of our own tables
from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from mainspring.errors import SchemaMismatch, StoreUnavailable
from mainspring.model.health import UnreadableRow
from mainspring.store.migrations import migrations, pending, require_current
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import SQL, Database, Transaction
from mainspring.store.postgres.health import aside
from mainspring.store.unreadable import FIRST, LAST, LONGEST, TABLES, Table, holds, quoted

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

MIGRATIONS = migrations("mainspring.store.postgres")


class PostgresAdmin:
    """Admin on PostgreSQL, but for `close`, which is the store's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def now(self, *, at: Stamp) -> datetime:
        [row] = await self._database.relaxed("now", at=at)
        now: datetime = row["now"]
        return now

    async def migrate(self) -> list[str]:
        applied: list[str] = []
        while True:
            # A transaction each: killed in between, the next run goes on from there.
            async with self._database.transaction("migrate") as transaction:
                await transaction.fetch("lock_migrations")
                await transaction.script(SQL["begin_migrations"][0])
                steps = pending(MIGRATIONS, await _applied(transaction))
                if not steps:
                    break
                step = steps[0]
                await transaction.script(step.sql)
                await transaction.fetch(
                    "record_migration", version=step.version, name=step.name, checksum=step.checksum
                )
            applied.append(step.name)
        async with self._database.transaction("migrate") as transaction:
            await transaction.fetch("lock_migrations")
            await transaction.fetch("add_partitions", at=None)
        return applied

    async def verify(self) -> None:
        async with self._database.transaction("verify", reads=True) as transaction:
            [row] = await transaction.fetch("migrations_exist")
            if not row["yes"]:
                raise SchemaMismatch(0, len(MIGRATIONS))
            require_current(MIGRATIONS, await _applied(transaction))

    async def set_aside(self) -> list[UnreadableRow]:
        await self.verify()
        found: list[UnreadableRow] = []
        for name, table in TABLES.items():
            try:
                found += await self._set_aside(name, _unreadable(name, table), [])
                for column, kind in table.documents.items():
                    found += await self._set_aside_documents(name, table, column, kind)
            except StoreUnavailable:
                continue  # it takes too long, or somebody has such a row: the others are looked at
        return found

    async def _set_aside_documents(
        self, name: str, table: Table, column: str, kind: str
    ) -> list[UnreadableRow]:
        key = " || ' ' || ".join(f"{part}::text" for part in table.key)
        rows = await self._asked(f"SELECT {key} AS key, {column} AS text FROM mainspring.{name}", [])
        broken = [row["key"] for row in rows if not holds(kind, row["text"])]
        return await self._set_aside(name, f"{key} = ANY ($1::text[])", [broken]) if broken else []

    async def _set_aside(self, name: str, which: str, args: list[object]) -> list[UnreadableRow]:
        key = ", ".join(f"{part}::text" for part in TABLES[name].key)
        rows = await self._asked(
            f"WITH gone AS (DELETE FROM mainspring.{name} t WHERE {which} RETURNING *) "
            "INSERT INTO mainspring.unreadable_rows (kind, ref, content) "
            f"SELECT '{name}', concat_ws(' ', {key}), to_jsonb(gone) FROM gone RETURNING kind, ref, at",
            args,
        )
        return [aside(row) for row in rows]

    async def _asked(self, sql: str, args: Sequence[object]) -> list[Record]:
        async with self._database.transaction("set_aside") as transaction:
            return await transaction.ask(sql, args)

    async def identity(self) -> str:
        [row] = await self._database.fetch("identity")
        found: str = row["id"]
        return found

    async def change_identity(self, new: str, *, force: bool, at: Stamp) -> str | None:
        rows = await self._database.fetch("change_identity", id=new, force=force, at=at)
        self._database.lives.end()  # what this process has learnt of the database is no longer so
        return rows[0]["id"] if rows else None

    async def is_down(self) -> bool:
        return await self._database.is_down()

    async def facts(self) -> dict[str, str]:
        [row] = await self._database.fetch("facts")
        return {"engine": "postgresql", **dict(row)}


async def _applied(transaction: Transaction) -> dict[int, str]:
    return {row["version"]: row["checksum"] for row in await transaction.fetch("applied_migrations")}


def _unreadable(name: str, table: Table) -> str:
    """The condition that finds them, without an error whatever they hold."""
    first, last = FIRST.isoformat(), LAST.isoformat()
    longest = f"interval '{LONGEST.days} days'"
    wrong = [f"t.{each} NOT BETWEEN '{first}' AND '{last}'" for each in table.moments]
    wrong += [f"t.{each} NOT BETWEEN -{longest} AND {longest}" for each in table.lengths]
    wrong += [f"t.{each} NOT BETWEEN {low} AND {high}" for each, (low, high) in table.numbers.items()]
    wrong += [f"t.{each} NOT BETWEEN -1e15 AND 1e15" for each in table.fractions]
    wrong += [f"t.{each}::text NOT IN ({quoted(words)})" for each, words in table.words.items()]
    for column, other in (
        *((f"{each}_id", f"{each}s") for each in table.named),
        *table.rows.items(),
    ):
        wrong.append(f"NOT EXISTS (SELECT 1 FROM mainspring.{other} o WHERE o.id = t.{column})")
    if table.failure:
        wrong.append(f"NOT mainspring.is_failure(t.{table.failure})")
    if table.failures:
        listed = (
            f"CASE WHEN jsonb_typeof(t.{table.failures}) = 'array' THEN t.{table.failures} ELSE '[0]' END"
        )
        wrong.append(
            f"t.{table.failures} IS NOT NULL AND EXISTS "
            f"(SELECT 1 FROM jsonb_array_elements({listed}) e WHERE NOT mainspring.is_failure(e))"
        )
    return " OR ".join(wrong)
