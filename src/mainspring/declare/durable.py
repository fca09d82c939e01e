"""Steps, sleeps and waits: the checks of what a handler asks for."""

from __future__ import annotations

from datetime import timedelta
from typing import Final, ParamSpec, Protocol, TypeVar

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
