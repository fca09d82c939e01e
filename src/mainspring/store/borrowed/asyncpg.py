"""asyncpg: a `Connection`, or what a pool has handed out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mainspring.errors import UsageError
from mainspring.store.borrowed.guest import POSTGRES, Blocking, Params, Result, dollars, no_transaction

T = TypeVar("T")


class AsyncpgGuest:
    """A connection that is awaited."""

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
