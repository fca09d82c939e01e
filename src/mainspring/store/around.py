"""A wrapper of a store that makes every call through one function. The function measures calls, records
calls, or loses their answers in a test."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from mainspring.clock import Clock
from mainspring.store.store import Store

Method = Callable[..., Awaitable[Any]]


class Around(Protocol):
    """Makes one call of a store. `name` is the noun and the method: `leases.acquire`."""

    async def __call__(self, name: str, method: Method, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer of the method, or another answer."""


class Told(Protocol):
    """Is called at the end of every call."""

    def __call__(self, call: str, seconds: float, *, error: BaseException | None) -> None: ...


def around(store: Store, call: Around) -> Store:
    """The same store, whose coroutine methods are called through `call`."""
    return cast("Store", _Around(store, "", call))


def timed(store: Store, clock: Clock, told: Told) -> Store:
    """The same store. At the end of each call, `told` gets how long the call took, including the wait for a
    connection, and the error that it raised."""

    async def call(name: str, method: Method, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        began = clock.monotonic()
        try:
            answer = await method(*args, **named)
        except BaseException as error:
            told(name, clock.monotonic() - began, error=error)
            raise
        told(name, clock.monotonic() - began, error=None)
        return answer

    return around(store, call)


class _Around:
    """The wrapper. It wraps each method and each noun at its first use."""

    def __init__(self, part: object, prefix: str, call: Around) -> None:
        self._part, self._prefix, self._call = part, prefix, call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        if name.startswith("_"):
            return found
        if inspect.iscoroutinefunction(found):
            found = self._around(self._prefix + name, found)
        elif not self._prefix and type(found).__module__.startswith("mainspring.store."):
            found = _Around(found, f"{name}.", self._call)
        else:
            return found
        setattr(self, name, found)
        return found

    def _around(self, name: str, method: Method) -> Method:
        async def call(*args: Any, **named: Any) -> Any:
            return await self._call(name, method, args, named)

        return call
