"""Kinds of connections for `tx=`. The kind is found by the names of the classes.

asyncpg: a `Connection`, also from a pool. psycopg 3: `Connection` and `AsyncConnection`.
Django: a database's alias, or its connection. SQLAlchemy 2: `Session` and `Connection`, and their async
variants, which begin transactions by themselves. This module imports none of these libraries.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from mainspring.errors import InvalidArgument, UsageError
from mainspring.store.borrowed.guest import (
    POSTGRES,
    SQLITE,
    Awaiting,
    Blocking,
    Lent,
    Params,
    Result,
    SQLiteGuest,
    dollars,
    no_transaction,
    pyformat,
    rows,
)

_EXPECTED = (
    "a connection with a transaction: psycopg, asyncpg, SQLAlchemy (Session, AsyncSession, Connection,"
    " AsyncConnection), a Django alias or connection, or sqlite3"
)
T = TypeVar("T")
_IDLE = 0
"""libpq's PQTRANS_IDLE, and psycopg's TransactionStatus."""
_AUTOCOMMIT = "AUTOCOMMIT"


def blocking(tx: object) -> Blocking:
    """The guest for a call that blocks."""
    guest = _guest(tx)
    if hasattr(guest, "blocking"):
        raise UsageError(
            f"tx: {_kind(tx)} is awaited: await aenqueue(), aenqueue_many() or acomplete() with it"
        )
    found: Blocking = guest
    found.check()
    return found


def awaiting(tx: object) -> Awaiting:
    """The guest for a call that is awaited."""
    guest = _guest(tx)
    if not hasattr(guest, "blocking"):
        raise UsageError(f"tx: {_kind(tx)} blocks: call enqueue(), enqueue_many() or complete() with it")
    found: Awaiting = guest
    found.check()
    return found


class PsycopgGuest:
    """A blocking connection of psycopg."""

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
    """An async connection of psycopg."""

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


class AsyncpgGuest:
    """An async connection of asyncpg."""

    dialect = POSTGRES

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        if not self._connection.is_in_transaction():
            raise no_transaction("asyncpg connection", "use it inside `async with connection.transaction():`")

    async def run(self, text: str, params: Params) -> Result:
        sql, names = dollars(text)
        found = await self._connection.fetch(sql, *[params[name] for name in names])
        return Result([dict(row) for row in found], len(found))

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        raise UsageError("tx: a connection to PostgreSQL was asked for SQLite's work")


class SQLAlchemyGuest:
    """A blocking `Connection` of SQLAlchemy."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.dialect: str = connection.dialect.name
        self._paramstyle: str = connection.dialect.paramstyle

    def check(self) -> None:
        # The level is an option of this connection or of its engine, or an argument of the engine.
        level = self._connection.get_execution_options().get("isolation_level")
        if level is None:
            level = getattr(self._connection.dialect, "_on_connect_isolation_level", None)
        if level == _AUTOCOMMIT:
            raise no_transaction(
                "SQLAlchemy connection, whose isolation level is AUTOCOMMIT", "use an engine without it"
            )

    def run(self, text: str, params: Params) -> Result:
        # Not with text(), which would read casts as parameters.
        result = self._connection.exec_driver_sql(*self._spelled(text, params))
        if not result.returns_rows:
            return Result([], result.rowcount)
        return Result(rows(result.keys(), result.fetchall()), result.rowcount)

    def _spelled(self, text: str, params: Params) -> tuple[str, Any]:
        if self.dialect == SQLITE:
            return text, dict(params)
        if self.dialect == POSTGRES and self._paramstyle == "pyformat":
            return pyformat(text), dict(params)
        if self.dialect == POSTGRES and self._paramstyle.startswith("numeric"):
            sql, names = dollars(text)
            return sql, tuple(params[name] for name in names)
        driver = f"{self.dialect}+{self._connection.dialect.driver}"
        raise InvalidArgument("tx", driver, "SQLAlchemy with psycopg, asyncpg or SQLite")


class AsyncSQLAlchemyGuest:
    """An `AsyncConnection` or an `AsyncSession`: it runs statements on its blocking variant."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.dialect: str = _sync_connection(connection).dialect.name

    def check(self) -> None:
        if (twin := getattr(self._connection, "sync_connection", None)) is not None:
            SQLAlchemyGuest(twin).check()

    async def run(self, text: str, params: Params) -> Result:
        return await self.blocking(lambda guest: guest.run(text, params))

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        def inside(twin: Any) -> T:
            guest = SQLAlchemyGuest(_connection_of(twin))
            guest.check()
            return work(guest)

        done: T = await self._connection.run_sync(inside)
        return done


class DjangoGuest:
    """A Django connection. It uses the cursor of Django, so that the instrumentation of Django sees the
    statements."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.dialect: str = connection.vendor

    def check(self) -> None:
        if not self._connection.in_atomic_block and self._connection.get_autocommit():
            raise no_transaction("Django connection", "use it inside `with transaction.atomic():`")

    def run(self, text: str, params: Params) -> Result:
        with self._connection.cursor() as cursor:
            cursor.execute(pyformat(text), dict(params))
            if not cursor.description:
                return Result([], cursor.rowcount)
            return Result(
                rows([column[0] for column in cursor.description], cursor.fetchall()), cursor.rowcount
            )


def _guest(tx: object) -> Any:
    if isinstance(tx, Lent):
        return tx.guest()
    if isinstance(tx, str):
        return DjangoGuest(_by_alias(tx))
    for cls in type(tx).__mro__:
        found = _KINDS.get((cls.__module__.partition(".")[0], cls.__name__))
        if found is not None:
            return found(tx)
    raise InvalidArgument("tx", type(tx), _EXPECTED)


def _kind(tx: object) -> str:
    return f"{type(tx).__module__.partition('.')[0]}'s {type(tx).__name__}"


def _sqlalchemy(tx: object) -> object:
    return SQLAlchemyGuest(_connection_of(tx))


def _by_alias(alias: str) -> Any:
    """The connection of this name, in this thread."""
    django = sys.modules.get("django.db")
    if django is None:
        expected = "a connection: a name is an alias of Django's, which is not in use here"
        raise InvalidArgument("tx", alias, expected)
    if alias not in django.connections:
        raise InvalidArgument("tx", alias, f"one of Django's databases: {', '.join(django.connections)}")
    return django.connections[alias]


def _check(connection: Any, instead: str) -> None:
    # Without autocommit the driver begins a transaction by itself.
    if connection.autocommit and connection.info.transaction_status == _IDLE:
        raise no_transaction("psycopg connection, which is in autocommit mode", f"use it inside `{instead}`")


def _result(cursor: Any, found: list[Any]) -> Result:
    return Result(rows([column.name for column in cursor.description or ()], found), cursor.rowcount)


def _tuples() -> Any:
    from psycopg.rows import tuple_row  # a caller with such a connection has the library

    return tuple_row


def _connection_of(tx: Any) -> Any:
    """The `Connection`, or the connection that a session uses."""
    return tx if hasattr(tx, "exec_driver_sql") else tx.connection()


def _sync_connection(tx: Any) -> Any:
    """An object that has the dialect, without awaiting: the bind of a session, or the engine."""
    if (twin := getattr(tx, "sync_connection", None)) is not None:
        return twin
    if hasattr(tx, "get_bind"):
        return tx.get_bind()
    return tx.engine


_KINDS: dict[tuple[str, str], Callable[[object], object]] = {
    ("sqlite3", "Connection"): SQLiteGuest,
    ("psycopg", "Connection"): PsycopgGuest,
    ("psycopg", "AsyncConnection"): AsyncPsycopgGuest,
    ("asyncpg", "Connection"): AsyncpgGuest,
    ("asyncpg", "PoolConnectionProxy"): AsyncpgGuest,
    ("sqlalchemy", "Connection"): _sqlalchemy,
    ("sqlalchemy", "Session"): _sqlalchemy,
    ("sqlalchemy", "scoped_session"): _sqlalchemy,
    ("sqlalchemy", "AsyncConnection"): AsyncSQLAlchemyGuest,
    ("sqlalchemy", "AsyncSession"): AsyncSQLAlchemyGuest,
    ("sqlalchemy", "async_scoped_session"): AsyncSQLAlchemyGuest,
    ("django", "BaseDatabaseWrapper"): DjangoGuest,
    ("django", "ConnectionProxy"): DjangoGuest,
}
