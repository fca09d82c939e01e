"""The schema each dialect's migrations make, as text that no server version changes.

`python -m tests.support.schema --write` rewrites both snapshots, after a migration was added.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path

import asyncpg

from mainspring.store.opener import open_store
from mainspring.testing.clock import ManualClock
from tests.support.postgres import PostgresServer

STORES = Path(__file__).parents[2] / "src" / "mainspring" / "store"

# The days' partitions come and go with the clock; they are no part of the layout.
_TABLES = """
SELECT c.oid, c.relname AS name, pg_get_partkeydef(c.oid) AS partitioned_by, parent.relname AS partition_of,
       pg_get_expr(c.relpartbound, c.oid) AS bound,
       ARRAY(SELECT unnest(c.reloptions) ORDER BY 1) AS options,
       ARRAY(
           SELECT 'toast.' || o FROM pg_class t, unnest(t.reloptions) o
           WHERE t.oid = c.reltoastrelid ORDER BY 1
       ) AS toast_options
FROM pg_class c
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
LEFT JOIN pg_class parent ON parent.oid = i.inhparent
WHERE c.relnamespace = 'mainspring'::regnamespace AND c.relkind IN ('r', 'p') AND c.relname !~ '_[0-9]{8}$'
ORDER BY c.relname
"""
_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS filled,
       a.attidentity::text AS identity, pg_get_expr(d.adbin, d.adrelid) AS value
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
# PostgreSQL 18 lists NOT NULL as constraints too; the columns say it already.
_CONSTRAINTS = """
SELECT conname AS name, pg_get_constraintdef(oid) AS text FROM pg_constraint
WHERE conrelid = $1 AND contype <> 'n' ORDER BY conname
"""
_INDEXES = """
SELECT pg_get_indexdef(i.indexrelid) AS text FROM pg_index i
WHERE i.indrelid = $1 AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conindid = i.indexrelid)
ORDER BY 1
"""
_SEQUENCES = """
SELECT c.relname AS name, s.seqtypid::regtype::text AS type, s.seqstart AS first, s.seqincrement AS step,
       s.seqcache AS cache
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
WHERE c.relnamespace = 'mainspring'::regnamespace
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'i')
ORDER BY 1
"""
_FUNCTIONS = """
SELECT p.proname AS name, pg_get_function_arguments(p.oid) AS arguments,
       pg_get_function_result(p.oid) AS result,
       l.lanname AS language, coalesce(array_to_string(p.proconfig, ', '), '') AS settings, p.prosrc AS source
FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
WHERE p.pronamespace = 'mainspring'::regnamespace ORDER BY 1, 2
"""
_TRIGGERS = """
SELECT pg_get_triggerdef(t.oid) AS text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'mainspring'::regnamespace AND NOT t.tgisinternal ORDER BY 1
"""
_SQLITE = """
SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
ORDER BY tbl_name, type DESC, name
"""


async def postgres_schema(url: str) -> str:
    """The layout of a migrated database, from its catalogs."""
    connection = await asyncpg.connect(url, server_settings={"timezone": "UTC"})
    try:
        parts = [_sequence(row) for row in await connection.fetch(_SEQUENCES)]
        for table in await connection.fetch(_TABLES):
            parts.append(await _table(connection, table))
            parts += [f"{row['text']};" for row in await connection.fetch(_INDEXES, table["oid"])]
        parts += [f"{row['text']};" for row in await connection.fetch(_TRIGGERS)]
        parts += [_function(row) for row in await connection.fetch(_FUNCTIONS)]
        return "\n".join(parts) + "\n"
    finally:
        await connection.close()


def sqlite_schema(path: Path) -> str:
    """The layout of a migrated file, as SQLite keeps it."""
    connection = sqlite3.connect(path)
    try:
        return "".join(f"{sql};\n" for (sql,) in connection.execute(_SQLITE))
    finally:
        connection.close()


def _sequence(row: asyncpg.Record) -> str:
    steps = f"START {row['first']} INCREMENT {row['step']} CACHE {row['cache']}"
    return f"CREATE SEQUENCE mainspring.{row['name']} AS {row['type']} {steps};"


async def _table(connection: asyncpg.Connection, table: asyncpg.Record) -> str:
    if table["partition_of"]:
        parent = table["partition_of"]
        return f"CREATE TABLE mainspring.{table['name']} PARTITION OF mainspring.{parent} {table['bound']};"
    lines = [_column(row) for row in await connection.fetch(_COLUMNS, table["oid"])]
    lines += [
        f"    CONSTRAINT {row['name']} {row['text']}"
        for row in await connection.fetch(_CONSTRAINTS, table["oid"])
    ]
    text = f"CREATE TABLE mainspring.{table['name']} (\n" + ",\n".join(lines) + "\n)"
    if table["partitioned_by"]:
        text += f" PARTITION BY {table['partitioned_by']}"
    if options := [*table["options"], *table["toast_options"]]:
        text += " WITH (\n" + ",\n".join(f"    {option}" for option in options) + "\n)"
    return text + ";"


def _column(row: asyncpg.Record) -> str:
    text = f"    {row['name']} {row['type']}"
    if row["identity"]:
        text += f" GENERATED {'ALWAYS' if row['identity'] == 'a' else 'BY DEFAULT'} AS IDENTITY"
    elif row["value"] is not None:
        text += f" DEFAULT {row['value']}"
    return text + (" NOT NULL" if row["filled"] else "")


def _function(row: asyncpg.Record) -> str:
    head = f"CREATE FUNCTION mainspring.{row['name']}({row['arguments']}) RETURNS {row['result']}"
    settings = f" SET {row['settings']}" if row["settings"] else ""
    return f"{head}\nLANGUAGE {row['language']}{settings} AS $${row['source']}$$;"


async def _migrated(url: str) -> None:
    store = open_store(url, clock=ManualClock())
    try:
        await store.migrate()
    finally:
        await store.close()


def fresh_sqlite_schema(folder: Path) -> str:
    """What migrations from zero make of an empty file in this folder."""
    path = folder / "schema.db"
    asyncio.run(_migrated(f"sqlite:///{path}"))
    return sqlite_schema(path)


def fresh_postgres_schema(url: str) -> str:
    """What migrations from zero make of an empty database."""
    asyncio.run(_migrated(url))
    return asyncio.run(postgres_schema(url))


def main() -> None:
    """Print both layouts, or write them to their files."""
    with tempfile.TemporaryDirectory() as folder, PostgresServer() as server:
        made = {"sqlite": fresh_sqlite_schema(Path(folder)), "postgres": fresh_postgres_schema(server.url())}
    for dialect, text in made.items():
        if "--write" in sys.argv[1:]:
            (STORES / dialect / "schema.sql").write_text(text, encoding="utf-8")
        else:
            sys.stdout.write(f"-- {dialect}\n{text}\n")


if __name__ == "__main__":
    main()
