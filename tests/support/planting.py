"""Rows that nothing of ours would write, put into a database past its constraints."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from typing import Any

import asyncpg


class Soil:
    """One database, of either dialect, without the constraints that keep such rows out."""

    def __init__(self, url: str, *, open_up: bool = True) -> None:
        self.url = url
        self.postgres = url.startswith("postgresql:")
        self._next = 900_000
        self._open = open_up
        if self.postgres and open_up:
            self._run(self._open_up)

    def plant(self, table: str, key: str | None, base: dict[str, Any], /, **wrong: Any) -> None:
        """A row like `base`, or else like one that is there, with another key and what is wrong with it."""
        self._next += 1
        row = {**base, **({} if key is None else {key: self._next}), **wrong}
        if self.postgres:
            self._run(lambda connection: self._insert(connection, table, row, copied=not base))
        else:
            self._write(table, row, copied=not base)

    def rows(self, query: str) -> list[Any]:
        """What a query answers, in the words that both dialects have."""
        if self.postgres:
            query = query.replace("FROM ", "FROM mainspring.")
            return [tuple(row) for row in self._run(lambda connection: connection.fetch(query))]
        with closing(self._file()) as file:
            return file.execute(query).fetchall()

    def _run(self, work: Any) -> Any:
        async def call() -> Any:
            connection = await asyncpg.connect(self.url)
            try:
                return await work(connection)
            finally:
                await connection.close()

        return asyncio.run(call())

    async def _open_up(self, connection: Any) -> None:
        found = await connection.fetch(
            "SELECT conrelid::regclass::text AS t, conname FROM pg_constraint "
            "WHERE conname LIKE '%\\_readable'"
        )
        assert found
        for each in found:
            await connection.execute(f"ALTER TABLE {each['t']} DROP CONSTRAINT {each['conname']}")

    async def _insert(self, connection: Any, table: str, row: dict[str, Any], *, copied: bool) -> None:
        source = f"to_jsonb(x) || $1::jsonb FROM mainspring.{table} x LIMIT 1" if copied else "$1::jsonb"
        found = await connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'mainspring' "
            "AND table_name = $1 AND is_generated = 'NEVER'",
            table,
        )
        names = ", ".join(each["column_name"] for each in found if copied or each["column_name"] in row)
        filled = (
            f"SELECT (jsonb_populate_record(NULL::mainspring.{table}, j)).* FROM (SELECT {source}) AS y (j)"
        )
        await connection.execute(
            f"INSERT INTO mainspring.{table} ({names}) OVERRIDING SYSTEM VALUE "
            f"SELECT {names} FROM ({filled}) AS z",
            json.dumps(row),
        )

    def _file(self) -> sqlite3.Connection:
        file = sqlite3.connect(self.url.removeprefix("sqlite:///"), isolation_level=None, timeout=10)
        if self._open:
            file.execute("PRAGMA ignore_check_constraints = ON")
        return file

    def _write(self, table: str, row: dict[str, Any], *, copied: bool) -> None:
        with closing(self._file()) as file:
            if copied:
                found = file.execute(f"SELECT * FROM {table} LIMIT 1")
                names = [each[0] for each in found.description]
                row = {**dict(zip(names, found.fetchone(), strict=True)), **row}
            blobs = {each[1] for each in file.execute(f"PRAGMA table_info({table})") if each[2] == "BLOB"}
            marks = ", ".join(
                f"CAST(:{name} AS TEXT)" if isinstance(value, bytes) and name not in blobs else f":{name}"
                for name, value in row.items()
            )
            file.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", row)
