"""Guests: borrowed connections that run a statement of the store inside the transaction of their caller.

A statement has `:name` parameters, as in the .sql files. Errors of the driver are not changed, so that the
caller can still handle them, for example with a retry. Only the error for a missing schema becomes
SchemaMismatch.
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
    """The answer of a statement."""

    rows: list[Row]
    changed: int


class Blocking(Protocol):
    """A blocking connection."""

    dialect: str

    def check(self) -> None:
        """Raise UsageError unless a transaction is, or with the next statement will be, in progress."""

    def run(self, text: str, params: Params) -> Result:
        """Run one statement."""


class Awaiting(Protocol):
    """An async connection."""

    dialect: str

    def check(self) -> None:
        """As `Blocking.check`."""

    async def run(self, text: str, params: Params) -> Result:
        """Run one statement."""

    async def blocking(self, work: Callable[[Blocking], T]) -> T:
        """Run several statements, with code that does not await."""


class Lent:
    """Base class of connections that the store lends to handlers. Such a connection makes its own guest."""

    def guest(self) -> Blocking | Awaiting:
        """This connection as a guest."""
        raise NotImplementedError


def no_transaction(what: str, instead: str) -> UsageError:
    """The error for a connection on which every statement would be a separate transaction."""
    return UsageError(f"tx: no transaction is in progress on this {what}; {instead}")


def rows(columns: Iterable[str], found: Iterable[Sequence[Any]]) -> list[Row]:
    """Rows as dicts, for every row type of the connection."""
    names = list(columns)
    return [dict(zip(names, each, strict=True)) for each in found]


@lru_cache(maxsize=64)
def dollars(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with `$n`, and the names in their order: for drivers with numbered parameters."""
    return numbered(text)


@lru_cache(maxsize=64)
def pyformat(text: str) -> str:
    """The text with `%(name)s`, for drivers with named parameters."""
    numbers, names = numbered(text.replace("%", "%%"))
    return re.sub(r"\$([0-9]+)", lambda match: f"%({names[int(match[1]) - 1]})s", numbers)


class SQLiteGuest:
    """A connection of the standard library's driver, on the thread that made it."""

    dialect = SQLITE

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def check(self) -> None:
        # `autocommit` came with Python 3.12; -1 means that isolation_level decides, as before.
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
