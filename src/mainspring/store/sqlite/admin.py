"""Schema and facts of a SQLite store."""

# ruff: noqa: S608 - the names in statements that are made here are those of our own tables
from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from mainspring.errors import SchemaMismatch
from mainspring.model.health import UnreadableRow
from mainspring.store.migrations import pending, require_current
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import MIGRATIONS, WAL_RESET_FIXED, Session
from mainspring.store.sqlite.database import Database, identity
from mainspring.store.sqlite.health import aside
from mainspring.store.sqlite.rows import micros, moment, span
from mainspring.store.unreadable import FIRST, LAST, LONGEST, TABLES, Table, holds, quoted


class SQLiteAdmin:
    """Admin on SQLite, but for `close`, which is the store's."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def now(self, *, at: Stamp) -> datetime:
        return await self._database.read(lambda session: moment(session.now(at)))

    async def migrate(self) -> list[str]:
        applied = []
        # A transaction each: killed in between, the next run goes on from there. The write lock
        # makes a second migrator wait, and it then finds nothing to do.
        while name := await self._database.write(_migrate_one):
            applied.append(name)
        return applied

    async def verify(self) -> None:
        def work(session: Session) -> None:
            if not session.row("migrations_exist")["yes"]:
                raise SchemaMismatch(0, len(MIGRATIONS))
            require_current(MIGRATIONS, _applied(session))

        await self._database.read(work)

    async def set_aside(self) -> list[UnreadableRow]:
        await self.verify()
        # Found first, without the write lock: history may be ten million rows long.
        found = await self._database.search(_search)
        return await self._database.write(lambda session: _set_aside(session, found)) if found else []

    async def identity(self) -> str:
        return await self._database.read(identity)

    async def change_identity(self, new: str, *, force: bool, at: Stamp) -> str | None:
        def work(session: Session) -> str | None:
            old = identity(session)
            if not session.change("change_identity", id=new, force=force, now=session.now(at)):
                return None
            self._database.identity = new
            return old

        return await self._database.write(work)

    async def is_down(self) -> bool:
        return await self._database.is_down()

    async def facts(self) -> dict[str, str]:
        def work(session: Session) -> dict[str, str]:
            return {
                "engine": "sqlite",
                "version": session.row("facts")["version"],
                "journal_mode": session.row("journal_mode")["journal_mode"],
                # Its name alone: pages show this to people who have no business in the machine's folders.
                "file": Path(self._database.path).name,
                "wal_reset_bug": _wal_reset_bug(),
            }

        return await self._database.read(work)


def _migrate_one(session: Session) -> str | None:
    session.change("begin_migrations")
    steps = pending(MIGRATIONS, _applied(session))
    if not steps:
        return None
    step = steps[0]
    session.script(step.sql)
    session.change(
        "record_migration",
        version=step.version,
        name=step.name,
        checksum=step.checksum,
        now=session.now(None),
    )
    return step.name


def _applied(session: Session) -> dict[int, str]:
    return {row["version"]: row["checksum"] for row in session.rows("applied_migrations")}


def _wal_reset_bug() -> str:
    if sqlite3.sqlite_version_info >= WAL_RESET_FIXED:
        return "not affected"
    return "affected, avoided by checkpointing only under the write lock"


_Found = dict[str, list[tuple[int, ...]]]
"""By table, the keys of rows that cannot be read. An empty key is for any of its rows: where keys are texts,
those may be what cannot be read, and the table is small."""


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


def _set_aside(session: Session, found: _Found) -> list[UnreadableRow]:
    """Move those that still cannot be read."""
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
                f"WHERE {here} RETURNING kind, ref, at",
                (name, now, *key),
            ).fetchall()
            if rows:
                connection.execute(f"DELETE FROM {name} WHERE {here}", key)
            moved += [aside(row) for row in rows]
    return moved


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
    """A column as text, though it may hold what is none."""
    broken = f"typeof({column}) = 'text' AND NOT is_text(CAST({column} AS BLOB))"
    whole = f"WHEN typeof({column}) = 'text' THEN {column} ELSE quote({column}) END"
    return f"CASE WHEN {broken} THEN quote(CAST({column} AS BLOB)) {whole}"


def _unreadable(table: Table, columns: Mapping[str, str]) -> str:
    """The condition that finds them, without an error whatever they hold."""
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
    # Read as bytes: a text that is none must not end the search.
    wrong += [f"NOT holds('{kind}', CAST({each} AS BLOB))" for each, kind in documents.items()]
    return " OR ".join(wrong)
