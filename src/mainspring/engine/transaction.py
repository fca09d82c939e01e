"""`ctx.transaction()`: the handler's own rows and the settlement of its job, together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Protocol, TypeVar

from mainspring.errors import UsageError
from mainspring.store.borrowed.blocking import BlockingConnection
from mainspring.store.effects import Loan
from mainspring.waiting import whole

T = TypeVar("T")


class Run(Protocol):
    """What a transaction needs of the run it is in."""

    open: object | None
    """The connection of the transaction that is open, if one is."""

    async def lend(self) -> Loan:
        """Begin one."""

    async def commit(self, loan: Loan, result: object) -> None:
        """Commit it with the settlement."""

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run this on the worker's event loop, and wait for it."""


class RunTransaction:
    """Entered once, with `async with` or, in a plain function, with `with`."""

    def __init__(self, run: Run, result: object) -> None:
        self.result = result
        self._run = run
        self._loan: Loan | None = None

    async def __aenter__(self) -> Any:
        self._loan = await self._run.lend()
        self._run.open = self._loan.connection
        return self._loan.connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        loan, self._loan, self._run.open = self._loan, None, None
        if loan is None:
            raise UsageError("this transaction was not entered")
        if error is not None:
            await whole(loan.rollback())
        else:
            await self._run.commit(loan, self.result)

    def __enter__(self) -> BlockingConnection:
        connection = self._run.call(self.__aenter__)
        face = BlockingConnection(connection, self._run.call)
        self._run.open = face
        return face

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.call(lambda: self.__aexit__(kind, error, trace))
