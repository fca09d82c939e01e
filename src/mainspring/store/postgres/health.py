"""Health of PostgreSQL, and the search for rows that cannot be read."""

# ruff: noqa: S608 - the statements that are made here contain only names of the store's tables
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainspring.errors import StoreError, StoreUnavailable
from mainspring.model.health import Partitions, Snapshot, StoreHealth, TableHealth, UnreadableRow
from mainspring.store.database import reads
from mainspring.store.health import Health, unreadable_row
from mainspring.store.migrations import Schema
from mainspring.store.postgres.connection import Database
from mainspring.store.rows import reader
from mainspring.store.unreadable import FIRST, LAST, LONGEST, TABLES, Table, holds, quoted

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

HIDDEN = "what the sessions of other users do: grant this role pg_read_all_stats"
_table = reader(TableHealth, hot=lambda row: row["hot_updates"] / row["updates"] if row["updates"] else None)
_snapshot = reader(Snapshot)


class PostgresHealth(Health):
    """Health on PostgreSQL. Each view of the server may be forbidden to this role."""

    def __init__(self, database: Database, schema: Schema) -> None:
        super().__init__(database, schema)
        self._server = database

    @reads
    async def look(self) -> StoreHealth:
        withheld: list[str] = []
        tables = await self._ask("table_health", "the state of tables", withheld)
        partitions = await self._ask("partition_health", "the days of history", withheld)
        snapshots = await self._ask("snapshot_health", "the oldest snapshot", withheld)
        found = await self._ask("server_health", "sessions and sizes", withheld)
        server = dict(found[0]) if found else {}
        if server.pop("hidden", 0):
            withheld.append(HIDDEN)
        return StoreHealth(
            engine="postgresql",
            tables=tuple(map(_table, tables)),
            partitions=tuple(Partitions(**dict(row)) for row in partitions),
            snapshots=tuple(map(_snapshot, snapshots)),
            unreadable=tuple(map(unreadable_row, await self._server.fetch("unreadable_rows"))),
            withheld=tuple(withheld),
            **server,
        )

    @reads
    async def damage(self) -> list[str] | None:
        return None

    @reads
    async def facts(self) -> dict[str, str]:
        [row] = await self._server.fetch("facts")
        return {"engine": "postgresql", **dict(row)}

    @reads
    async def is_down(self) -> bool:
        return await self._server.is_down()

    async def _ask(self, statement: str, about: str, withheld: list[str]) -> list[Record]:
        try:
            return await self._server.fetch(statement)
        except StoreUnavailable:
            raise
        except StoreError as error:
            withheld.append(f"{about}: {error}")
            return []

    async def _set_aside(self) -> list[UnreadableRow]:
        found: list[UnreadableRow] = []
        for name, table in TABLES.items():
            try:
                found += await self._move(name, _unreadable(table), [])
                for column, kind in table.documents.items():
                    found += await self._move_documents(name, table, column, kind)
            except StoreUnavailable:
                continue  # it takes too long, or such a row is locked: go on with the next table
        return found

    async def _move_documents(self, name: str, table: Table, column: str, kind: str) -> list[UnreadableRow]:
        key = " || ' ' || ".join(f"{part}::text" for part in table.key)
        rows = await self._asked(f"SELECT {key} AS key, {column} AS text FROM mainspring.{name}", [])
        broken = [row["key"] for row in rows if not holds(kind, row["text"])]
        return await self._move(name, f"{key} = ANY ($1::text[])", [broken]) if broken else []

    async def _move(self, name: str, which: str, args: list[object]) -> list[UnreadableRow]:
        key = ", ".join(f"{part}::text" for part in TABLES[name].key)
        rows = await self._asked(
            f"WITH gone AS (DELETE FROM mainspring.{name} t WHERE {which} RETURNING *) "
            "INSERT INTO mainspring.unreadable_rows (kind, ref, content) "
            f"SELECT '{name}', concat_ws(' ', {key}), to_jsonb(gone) FROM gone "
            'RETURNING kind AS "table", ref AS "key", at',
            args,
        )
        return [unreadable_row(row) for row in rows]

    async def _asked(self, sql: str, args: Sequence[object]) -> list[Record]:
        async with self._server.transaction("set_aside") as transaction:
            return await transaction.ask(sql, args)


def _unreadable(table: Table) -> str:
    """The condition that finds these rows. It raises no error for any value."""
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
