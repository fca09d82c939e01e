"""`sqlite3.Connection`."""

from __future__ import annotations

from typing import Any

from mainspring.store.borrowed.guest import SQLITE, Params, Result, no_transaction, rows

BEGIN = "begin one first, best with BEGIN IMMEDIATE"


class SQLiteGuest:
    """A connection of the standard library's driver, on the thread that made it."""

    dialect = SQLITE

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        # `autocommit` came with Python 3.12; -1 there means that isolation_level rules, as before.
        mode = getattr(self._connection, "autocommit", -1)
        begins_by_itself = mode is False or (mode == -1 and self._connection.isolation_level is not None)
        if not (begins_by_itself or self._connection.in_transaction):
            raise no_transaction("sqlite3 connection, which commits each statement", BEGIN)

    def run(self, text: str, params: Params) -> Result:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        try:
            cursor.execute(text, dict(params))
            found = cursor.fetchall()
            columns = [column[0] for column in cursor.description or ()]
            return Result(rows(columns, found), cursor.rowcount)
        finally:
            cursor.close()
