"""SQLAlchemy 2: `Session` and `Connection`, and their async twins. It begins transactions by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mainspring.errors import InvalidArgument
from mainspring.store.borrowed.guest import (
    POSTGRES,
    SQLITE,
    Blocking,
    Params,
    Result,
    dollars,
    no_transaction,
    pyformat,
    rows,
)

T = TypeVar("T")

_AUTOCOMMIT = "AUTOCOMMIT"


class SQLAlchemyGuest:
    """A blocking `Connection`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.dialect: str = connection.dialect.name
        self._paramstyle: str = connection.dialect.paramstyle

    def check(self) -> None:
        # As an option of this connection or its engine, or else as the engine was made.
        level = self._connection.get_execution_options().get("isolation_level")
        if level is None:
            level = getattr(self._connection.dialect, "_on_connect_isolation_level", None)
        if level == _AUTOCOMMIT:
            raise no_transaction(
                "SQLAlchemy connection, whose isolation level is AUTOCOMMIT", "use an engine without it"
            )

    def run(self, text: str, params: Params) -> Result:
        # Not through text(): it would take the casts for parameters.
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
    """An `AsyncConnection` or an `AsyncSession`: what it does, it does through its blocking twin."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.dialect: str = sync_connection(connection).dialect.name

    def check(self) -> None:
        if (twin := getattr(self._connection, "sync_connection", None)) is not None:
            SQLAlchemyGuest(twin).check()

    async def run(self, text: str, params: Params) -> Result:
        return await self.blocking(lambda guest: guest.run(text, params))

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        def inside(twin: Any) -> T:
            guest = SQLAlchemyGuest(connection_of(twin))
            guest.check()
            return work(guest)

        done: T = await self._connection.run_sync(inside)
        return done


def connection_of(tx: Any) -> Any:
    """The `Connection` itself, or the one that a session uses."""
    return tx if hasattr(tx, "exec_driver_sql") else tx.connection()


def sync_connection(tx: Any) -> Any:
    """Something that knows the dialect, without awaiting: the bind of a session, or the engine."""
    if (twin := getattr(tx, "sync_connection", None)) is not None:
        return twin
    if hasattr(tx, "get_bind"):
        return tx.get_bind()
    return tx.engine
