"""The interface of a dialect: named statements in transactions.

A transaction is a callback, so that SQLite can run it on its one writer thread without waiting. The callback
may await only the methods of the transaction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

T = TypeVar("T")

Stamp = datetime | None
"""The moment of a call, from the caller's clock. None means that the clock of the database decides."""
N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
_MARK = "only_reads"


class Row(Protocol):
    """A row of an answer. Times, flags, lists and JSON are as the dialect keeps them: `rows` reads them."""

    def __getitem__(self, column: str, /) -> Any: ...


class Transaction(Protocol):
    """Statements that happen together or not at all. `at` is the value of `:now`: the stamp, or else the
    moment when the transaction began, by the clock of the database."""

    async def fetch(self, statement: str, **params: object) -> Sequence[Row]:
        """Run one statement and answer its rows."""

    async def each(
        self, statement: str, sets: Sequence[Mapping[str, object]], **params: object
    ) -> Sequence[Row]:
        """Run a statement for each of these sets of parameters, and answer the rows of all. All sets have the
        same names. On PostgreSQL each name is bound to the array of its values."""

    async def script(self, text: str) -> None:
        """Run a text of several statements, such as a migration, without a time limit."""

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """Record that so many jobs may be due when the transaction has committed. `earlier` says that some of
        these jobs may be due before jobs that were claimed already."""


class Database(Protocol):
    """Runs statements. A statement outside of `within` is a separate transaction."""

    async def fetch(self, statement: str, **params: object) -> Sequence[Row]:
        """Run one statement and answer its rows. Its writes are durable on return."""

    async def relaxed(self, statement: str, **params: object) -> Sequence[Row]:
        """The same for writes that may be lost if the server, or the machine of an SQLite file, crashes."""

    async def each(
        self,
        statement: str,
        sets: Sequence[Mapping[str, object]],
        *,
        durable: bool = True,
        **params: object,
    ) -> Sequence[Row]:
        """As `Transaction.each`, in a transaction that does nothing else."""

    def hint(self, jobs: int = 1, *, earlier: bool = False) -> None:
        """As `Transaction.hint`, after a statement outside of a transaction."""

    async def within(
        self,
        what: str,
        work: Callable[[Any], Coroutine[Any, Any, T]],
        *,
        durable: bool = True,
        nested: bool = False,
    ) -> T:
        """Do the work with a `Transaction`, completely or not at all. On return the work is as durable as
        `fetch`, or, without `durable`, as `relaxed`. The work may be called again from its beginning if
        nothing of it has happened. `nested` is for work that, on PostgreSQL, uses other sessions meanwhile:
        for names, ids or definitions."""

    async def reading(self, what: str, work: Callable[[Any], Coroutine[Any, Any, T]]) -> T:
        """The same for work that only reads. On SQLite a writer does not block this work, and the work sees
        one snapshot of the database. On PostgreSQL each statement sees all that is committed when the
        statement begins."""

    def renamed(self, identity: str) -> None:
        """Note that the database has this id now. Values that this process has cached may be wrong from now
        on."""

    async def left_out(self, error: Exception) -> bool:
        """Whether rows that cannot be read may be the cause of this error, and have been set aside."""


class Noun(Protocol):
    """A part of the store."""

    @property
    def _database(self) -> Database: ...


def reads(
    method: Callable[Concatenate[N, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[N, P], Coroutine[Any, Any, T]]:
    """Mark a method that changes nothing. If the method reads a row that cannot be read, the row is set
    aside, and the method is called again."""

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
