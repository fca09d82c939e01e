"""A store whose calls are timed: one seam for both dialects, and none at all where nobody asks."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, cast

from mainspring.clock import Clock
from mainspring.store.ports import Store


class Told(Protocol):
    """Hears of every call when it is over."""

    def __call__(self, call: str, seconds: float, *, error: BaseException | None) -> None: ...


def timed(store: Store, clock: Clock, told: Told) -> Store:
    """The same store; `told` hears how long each call took, waiting for a connection included, and what it
    raised."""
    return cast("Store", _Timed(store, clock, told))


class _Timed:
    """Each method is wrapped when it is first asked for."""

    def __init__(self, store: Store, clock: Clock, told: Told) -> None:
        self._store, self._clock, self._told = store, clock, told

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name.startswith("_") or not inspect.iscoroutinefunction(found):
            return found
        monotonic, told = self._clock.monotonic, self._told

        async def call(*args: Any, **kwargs: Any) -> Any:
            began = monotonic()
            try:
                answer = await found(*args, **kwargs)
            except BaseException as error:
                told(name, monotonic() - began, error=error)
                raise
            told(name, monotonic() - began, error=None)
            return answer

        setattr(self, name, call)
        return call
