"""Blocking connections, on top of async connections: for handlers that are plain functions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from mainspring.store.borrowed.finder import awaiting
from mainspring.store.borrowed.guest import Awaiting, Blocking, Lent, Params, Result

T = TypeVar("T")


class Caller(Protocol):
    """Runs a coroutine on the event loop of its connection, and waits for its end."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T: ...


class BlockingConnection(Lent):
    """The calls of asyncpg's connection, without `await`; on SQLite they are the same, with `?` for
    each parameter. Usable as `tx=`."""

    def __init__(self, connection: Any, call: Caller) -> None:
        self._connection = connection
        self._call = call

    def execute(self, query: str, *args: object) -> str:
        """Run a statement; answer its command tag, such as "INSERT 1"."""
        tag: str = self._call(lambda: self._connection.execute(query, *args))
        return tag

    def executemany(self, query: str, args: Iterable[Sequence[object]]) -> None:
        """Run a statement once for each set of parameters."""
        self._call(lambda: self._connection.executemany(query, args))

    def fetch(self, query: str, *args: object) -> list[Any]:
        """Every row."""
        return self._call(lambda: self._connection.fetch(query, *args))

    def fetchrow(self, query: str, *args: object) -> Any:
        """The first row, or None."""
        return self._call(lambda: self._connection.fetchrow(query, *args))

    def fetchval(self, query: str, *args: object) -> Any:
        """The first value of the first row, or None."""
        return self._call(lambda: self._connection.fetchval(query, *args))

    def guest(self) -> Blocking:
        return _Guest(awaiting(self._connection), self._call)


class _Guest:
    def __init__(self, guest: Awaiting, call: Caller) -> None:
        self._guest = guest
        self._call = call
        self.dialect = guest.dialect

    def check(self) -> None:
        self._guest.check()

    def run(self, text: str, params: Params) -> Result:
        return self._call(lambda: self._guest.run(text, params))
