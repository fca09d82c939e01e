"""Health of an SQLite file, and the search for rows that cannot be read."""

# ruff: noqa: S608 - the statements that are made here contain only names of the store's tables
from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from mainspring.model.health import StoreHealth, UnreadableRow
from mainspring.store.database import reads
from mainspring.store.health import Health, unreadable_row
from mainspring.store.migrations import Schema
from mainspring.store.sqlite.connection import MEMORY, WAL_RESET_FIXED, Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import micros, span
from mainspring.store.unreadable import FIRST, LAST, LONGEST, TABLES, Table, holds, quoted

_Found = dict[str, list[tuple[int, ...]]]
"""By table, the keys of rows that cannot be read. An empty key means all rows of the table: a key that is a
text may itself be the value that cannot be read, and such a table is small."""


class SQLiteHealth(Health):
    """Health on SQLite: of the file, and of the library that reads it."""

    def __init__(self, database: Database, schema: Schema) -> None:
        super().__init__(database, schema)
        self._file = database

    @reads
    async def look(self) -> StoreHealth:
        def work(session: Session) -> StoreHealth:
            row = session.row("file_health")
            path = self._file.path
            return StoreHealth(
                engine="sqlite",
                bytes=row["pages"] * row["page_size"],
                free_bytes=row["free"] * row["page_size"],
                log_bytes=None if path == MEMORY else _size(f"{path}-wal"),
                journal=session.row("journal_mode")["journal_mode"],
                unreadable=tuple(map(unreadable_row, session.rows("unreadable_rows"))),
            )

        return await self._file.read(work)

    @reads
    async def damage(self) -> list[str] | None:
        # A pragma counts as a write, but this one only reads, so the reading thread runs it.
        rows = await self._file.read(lambda session: session.rows("quick_check"))
        found = [str(row["quick_check"]) for row in rows]
        return [] if found == ["ok"] else found

    @reads
    async def facts(self) -> dict[str, str]:
        def work(session: Session) -> dict[str, str]:
            return {
                "engine": "sqlite",
                "version": session.row("facts")["version"],
                "journal_mode": session.row("journal_mode")["journal_mode"],
                # Only the name: pages show it to users who must not see the folders of the machine.
                "file": Path(self._file.path).name,
                "wal_reset_bug": _wal_reset_bug(),
            }

        return await self._file.read(work)

    @reads
    async def is_down(self) -> bool:
        return await self._file.is_down()

    async def _set_aside(self) -> list[UnreadableRow]:
        # The search does not take the write lock, because history may have ten million rows.
        found = await self._file.search(_search)
        return await self._file.write(lambda session: _move(session, found)) if found else []


def _search(session: Session) -> _Found:
    connection, found = _with_functions(session), {}
    for name, table in TABLES.items():
        columns = _columns(connection, name)
        which = _unreadable(table, columns)
        if all(columns[each] == "INTEGER" for each in table.key):
            keys = connection.execute(f"SELECT {', '.join(table.key)} FROM {name} WHERE {which}").fetchall()
        else:
            keys = connection.execute(f"SELECT 1 FROM {name} WHERE {which} LIMIT 1").fetchall()
            keys = [()] if keys else []
        if keys:
            found[name] = [tuple(key) for key in keys]
    return found


def _move(session: Session, found: _Found) -> list[UnreadableRow]:
    """Move the rows that still cannot be read."""
    connection, now, moved = _with_functions(session), session.now(None), list[UnreadableRow]()
    for name, keys in found.items():
        table, columns = TABLES[name], _columns(connection, name)
        which, ref = _unreadable(table, columns), " || ' ' || ".join(map(_shown, table.key))
        content = ", ".join(f"'{column}', {_shown(column)}" for column in columns)
        for key in keys:
            here = " AND ".join([*(f"{each} = ?" for each in table.key[: len(key)]), f"({which})"])
            rows = connection.execute(
                "INSERT INTO unreadable_rows (kind, ref, content, at) "
                f"SELECT ?, {ref}, json_object({content}), ? FROM {name} "
                f'WHERE {here} RETURNING kind AS "table", ref AS "key", at',
                (name, now, *key),
            ).fetchall()
            if rows:
                connection.execute(f"DELETE FROM {name} WHERE {here}", key)
            moved += map(unreadable_row, rows)
    return moved


def _wal_reset_bug() -> str:
    if sqlite3.sqlite_version_info >= WAL_RESET_FIXED:
        return "not affected"
    return "affected, avoided by checkpointing only under the write lock"


def _size(path: str) -> int:
    """The size of a file; zero for a missing log, because the last process that closes the database removes
    the log."""
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, str]:
    return {row["name"]: row["type"] for row in connection.execute(f"PRAGMA table_info({table})")}


def _with_functions(session: Session) -> sqlite3.Connection:
    session.connection.create_function("is_text", 1, _is_text, deterministic=True)
    session.connection.create_function("holds", 2, holds, deterministic=True)
    return session.connection


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(column: str) -> str:
    """A column as text, also if its value is not valid text."""
    broken = f"typeof({column}) = 'text' AND NOT is_text(CAST({column} AS BLOB))"
    whole = f"WHEN typeof({column}) = 'text' THEN {column} ELSE quote({column}) END"
    return f"CASE WHEN {broken} THEN quote(CAST({column} AS BLOB)) {whole}"


def _unreadable(table: Table, columns: Mapping[str, str]) -> str:
    """The condition that finds these rows. It raises no error for any value."""
    texts = [name for name, kind in columns.items() if kind == "TEXT"]
    wrong = [f"NOT is_text(CAST(coalesce({each}, '') AS BLOB))" for each in texts]
    wrong += [f"{each} NOT BETWEEN {micros(FIRST)} AND {micros(LAST)}" for each in table.moments]
    wrong += [f"{each} NOT BETWEEN {-span(LONGEST)} AND {span(LONGEST)}" for each in table.lengths]
    wrong += [f"{each} NOT BETWEEN {low} AND {high}" for each, (low, high) in table.numbers.items()]
    wrong += [f"{each} NOT BETWEEN -1e15 AND 1e15" for each in table.fractions]
    wrong += [f"CAST({each} AS TEXT) NOT IN ({quoted(words)})" for each, words in table.words.items()]
    wrong += [
        f"NOT EXISTS (SELECT 1 FROM {other} o WHERE o.id = {each})" for each, other in table.rows.items()
    ]
    documents = {**table.documents, **table.lists}
    documents |= {table.failure: "failure"} if table.failure else {}
    documents |= {table.failures: "failures"} if table.failures else {}
    # Read as bytes: an invalid text must not end the search.
    wrong += [f"NOT holds('{kind}', CAST({each} AS BLOB))" for each, kind in documents.items()]
    return " OR ".join(wrong)
