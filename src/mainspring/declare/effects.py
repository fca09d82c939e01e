"""What a handler may do once and no more, as `ctx` offers it. The engine provides it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Connection(Protocol):
    """What a plain function is given by `with ctx.transaction()`: asyncpg's calls, without `await`."""

    def execute(self, query: str, *args: object) -> str: ...
    def executemany(self, query: str, args: Iterable[Sequence[object]]) -> None: ...
    def fetch(self, query: str, *args: object) -> list[Any]: ...
    def fetchrow(self, query: str, *args: object) -> Any: ...
    def fetchval(self, query: str, *args: object) -> Any: ...


class Transaction(Protocol):
    """What `ctx.transaction()` answers: a context, blocking or not. On PostgreSQL `async with` gives a
    connection of asyncpg's, on SQLite one with the same five calls as the blocking one."""

    result: object
    """What the job is to answer; may be set until the block ends."""

    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __enter__(self) -> Connection: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Step(Protocol):
    """What `ctx.once()` answers: a context, blocking or not, that says whether this is the first time."""

    async def __aenter__(self) -> bool: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Durable(Protocol):
    """What is behind `ctx.step()`, `ctx.sleep()`, `ctx.wait_event()` and their awaited twins; the arguments
    are checked already. `step_here` calls the step of a plain handler on the handler's own thread."""

    async def step(
        self,
        context: object,
        name: str,
        function: Callable[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any: ...
    def step_here(
        self,
        context: object,
        name: str,
        function: Callable[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any: ...
    async def sleep(self, length: timedelta, name: str | None) -> None: ...
    async def wait_event(self, name: str, limit: timedelta | None, default: object) -> Any: ...
    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T: ...


class Effects(Protocol):
    """One run's."""

    @property
    def durable(self) -> Durable: ...

    def transaction(self, result: object) -> Transaction: ...
    def complete(self, tx: object, result: object) -> None: ...
    async def acomplete(self, tx: object, result: object) -> None: ...
    def once(self, name: str, tx: object | None) -> Step: ...
