"""Methods that change nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mainspring.store.database import Database

N = TypeVar("N", bound="Noun")
P = ParamSpec("P")
T = TypeVar("T")
_MARK = "only_reads"


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
