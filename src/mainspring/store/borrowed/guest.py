"""What every borrowed connection can do: run one of our statements inside its caller's transaction.

A statement comes with `:name` parameters, as the .sql files write it. What the driver raises is left as
it is, so that the caller's own handling of it (a retry, say) still works; only a schema that is not
there becomes our word for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar

from mainspring.errors import UsageError
from mainspring.store.statements import numbered

T = TypeVar("T")

Row = dict[str, Any]
Params = Mapping[str, Any]
POSTGRES, SQLITE = "postgresql", "sqlite"
BEGIN = "begin one first, best with BEGIN IMMEDIATE"


class Result(NamedTuple):
    """What a statement answered."""

    rows: list[Row]
    changed: int


class Blocking(Protocol):
    """A connection that is used without awaiting."""

    dialect: str

    def check(self) -> None:
        """Raise UsageError unless a transaction is, or with the next statement will be, in progress."""

    def run(self, text: str, params: Params) -> Result:
        """Run one statement."""


class Awaiting(Protocol):
    """A connection that is awaited."""

    dialect: str

    def check(self) -> None:
        """As with a blocking one."""

    async def run(self, text: str, params: Params) -> Result:
        """Run one statement."""

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        """Run several, by code that does not await."""


class Lent:
    """Base of the connections that we hand out ourselves: they know what they are."""

    def guest(self) -> Blocking | Awaiting:
        """This connection as a guest."""
        raise NotImplementedError


def no_transaction(what: str, instead: str) -> UsageError:
    """For a connection on which every statement would be a transaction of its own."""
    return UsageError(f"tx: no transaction is in progress on this {what}; {instead}")


def rows(columns: Iterable[str], found: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows by name, whatever the connection makes of its rows for its owner."""
    names = list(columns)
    return [dict(zip(names, each, strict=True)) for each in found]


@lru_cache(maxsize=64)
def dollars(text: str) -> tuple[str, tuple[str, ...]]:
    """For drivers that number their parameters: the text with `$n`, and the names in their order."""
    return numbered(text)


@lru_cache(maxsize=64)
def pyformat(text: str) -> str:
    """For drivers that write `%(name)s`."""
    numbers, names = numbered(text.replace("%", "%%"))
    return re.sub(r"\$([0-9]+)", lambda match: f"%({names[int(match[1]) - 1]})s", numbers)


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
