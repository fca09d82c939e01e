"""psycopg 3: `Connection` and `AsyncConnection`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mainspring.errors import UsageError
from mainspring.store.borrowed.guest import (
    POSTGRES,
    Blocking,
    Params,
    Result,
    no_transaction,
    pyformat,
    rows,
)

T = TypeVar("T")

_IDLE = 0
"""libpq's PQTRANS_IDLE, and psycopg's TransactionStatus."""


class PsycopgGuest:
    """A blocking connection."""

    dialect = POSTGRES

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        _check(self._connection, "with connection.transaction():")

    def run(self, text: str, params: Params) -> Result:
        with self._connection.cursor(row_factory=_tuples()) as cursor:
            cursor.execute(pyformat(text), params)
            return _result(cursor, cursor.fetchall() if cursor.description else [])


class AsyncPsycopgGuest:
    """An awaited connection."""

    dialect = POSTGRES

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        _check(self._connection, "async with connection.transaction():")

    async def run(self, text: str, params: Params) -> Result:
        async with self._connection.cursor(row_factory=_tuples()) as cursor:
            await cursor.execute(pyformat(text), params)
            return _result(cursor, await cursor.fetchall() if cursor.description else [])

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        raise UsageError("tx: a connection to PostgreSQL was asked for SQLite's work")


def _check(connection: Any, instead: str) -> None:
    # Without autocommit the driver begins a transaction by itself.
    if connection.autocommit and connection.info.transaction_status == _IDLE:
        raise no_transaction("psycopg connection, which is in autocommit mode", f"use it inside `{instead}`")


def _result(cursor: Any, found: list[Any]) -> Result:
    return Result(rows([column.name for column in cursor.description or ()], found), cursor.rowcount)


def _tuples() -> Any:
    from psycopg.rows import tuple_row  # whoever has such a connection has the library

    return tuple_row
