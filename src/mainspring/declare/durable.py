"""Steps, sleeps and waits as handlers ask for them: what may be asked, and how plain functions do."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final, ParamSpec, Protocol, TypeVar, overload

from mainspring.declare.effects import Durable
from mainspring.declare.handle import JobHandle
from mainspring.declare.names import valid_name
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_SHORTEST_WAIT = timedelta(milliseconds=1)


class _Raise:
    """No default."""

    def __repr__(self) -> str:
        return "..."


RAISE: Final = _Raise()
"""In place of a default: a wait that times out raises."""


class Declared(Protocol[P, R_co]):
    """A task, as far as a step has to know it."""

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...


class Blocking:
    """`ctx.blocking`: for handlers that are plain functions, from the thread they run in."""

    def __init__(self, context: object, durable: Durable) -> None:
        self._context, self._durable = context, durable

    @overload
    def step(self, name: str, function: Declared[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def step(
        self, name: str, function: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    def step(self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def step(self, name: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As `await ctx.step(…)`; a plain function is called right here, a coroutine function on the
        worker's event loop."""
        valid_step(name, function)
        return self._durable.step_here(self._context, name, function, args, kwargs)

    def sleep(self, length: Duration, *, name: str | None = None) -> None:
        """As `await ctx.sleep(…)`."""
        asked = valid_length(length, name)
        self._durable.call(lambda: self._durable.sleep(*asked), instead="`await ctx.sleep(…)`")

    def wait_event(self, name: str, *, timeout: Duration | None = None, default: object = RAISE) -> Any:
        """As `await ctx.wait_event(…)`."""
        asked = valid_wait(name, timeout)
        return self._durable.call(
            lambda: self._durable.wait_event(*asked, default), instead="`await ctx.wait_event(…)`"
        )


def valid_step(name: str, function: object) -> None:
    """Raise InvalidArgument unless these name a step and what it does."""
    valid_name(name, "name")
    if not callable(function) and not hasattr(function, "signature"):
        raise InvalidArgument(
            "function",
            function,
            "a function, a coroutine function or a task, then its arguments: no call of it",
        )


def valid_length(length: Duration, name: str | None) -> tuple[timedelta, str | None]:
    """What `sleep` was asked for."""
    return duration(length, "length"), None if name is None else valid_name(name, "name")


def valid_wait(name: str, timeout: Duration | None) -> tuple[str, timedelta | None]:
    """What `wait_event` was asked for."""
    limit = None if timeout is None else duration(timeout, "timeout", least=_SHORTEST_WAIT)
    return valid_name(name, "name"), limit
