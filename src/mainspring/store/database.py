"""The seam between what is written once and the two dialects: named statements in transactions.

A transaction is a callback, so that SQLite can run it on its one writer thread without waiting. In it, only
the transaction's own methods may be awaited.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")

Stamp = datetime | None
"""The moment of a call: the clock's. None means that the database's own clock decides."""
N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
_MARK = "only_reads"


class Row(Protocol):
    """What a statement answers. Times, flags, lists and JSON are as the dialect keeps them: `rows` reads
    them."""

    def __getitem__(self, column: str, /) -> Any: ...


class Transaction(Protocol):
    """Statements that happen together or not at all. `at` stands for `:now`: the stamp, or else the moment at
    which the transaction began, by the database's clock."""

    async def fetch(self, statement: str, **params: object) -> Sequence[Row]:
        """Run one statement and answer its rows."""

    async def each(
        self, statement: str, sets: Sequence[Mapping[str, object]], **params: object
    ) -> Sequence[Row]:
        """Run a statement for each of these sets of parameters, which all have the same names, and answer the
        rows of all; none, when there are none. On PostgreSQL each name is bound to the array of its
        values."""

    async def script(self, text: str) -> None:
        """Run a text of several statements, as migrations are, however long it takes."""

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """Say that so many jobs may be due once the transaction has committed; `earlier` where some of them
        may be due before jobs that were claimed already."""


class Database(Protocol):
    """Where statements run. A statement alone is a transaction of its own."""

    async def fetch(self, statement: str, **params: object) -> Sequence[Row]:
        """Run one statement and answer its rows. What it wrote is durable on return."""

    async def relaxed(self, statement: str, **params: object) -> Sequence[Row]:
        """The same for what may be lost if the server, or the machine of an SQLite file, crashes."""

    async def each(
        self,
        statement: str,
        sets: Sequence[Mapping[str, object]],
        *,
        durable: bool = True,
        **params: object,
    ) -> Sequence[Row]:
        """As of a transaction that does nothing else."""

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """As of a transaction, after a statement alone."""

    async def within(
        self,
        what: str,
        work: Callable[[Any], Coroutine[Any, Any, T]],
        *,
        durable: bool = True,
        nested: bool = False,
    ) -> T:
        """Do the work with a `Transaction`, as a whole or not at all; on return it is as durable as `fetch`
        or, unless `durable`, as `relaxed`. It may be done again from its beginning, when nothing of it has
        happened. `nested` is for work that, on PostgreSQL, asks other sessions meanwhile: for names, ids or
        definitions."""

    async def reading(self, what: str, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """The same for work that only reads. SQLite does it beside whoever writes, and shows it one moment of
        the database; on PostgreSQL each statement sees what has been committed by then."""

    def renamed(self, identity: str) -> None:
        """The database has this id now: what this process has learnt of it may no longer be so."""

    async def left_out(self, error: Exception) -> bool:
        """Whether rows that cannot be read were in the way of a call that ended with this error, and have
        been moved out of it."""


class Noun(Protocol):
    """A part of the store."""

    @property
    def _database(self) -> Database: ...


def reads(
    method: Callable[Concatenate[N, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[N, P], Coroutine[Any, Any, T]]:
    """A method that changes nothing. Where it meets a row that cannot be read, the row is moved away, and the
    method is called again."""

    @functools.wraps(method)
    async def call(self: N, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(self, *args, **kwargs)
        except Exception as error:
            if not await self._database.left_out(error):
                raise
        return await method(self, *args, **kwargs)

    setattr(call, _MARK, True)
    return call


def only_reads(method: object) -> bool:
    """Whether a method of a noun was marked with `reads`."""
    return getattr(method, _MARK, False) is True
