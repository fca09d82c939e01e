"""A store whose calls are timed: one seam for both dialects, and none at all where nobody asks."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, cast

from mainspring.clock import Clock
from mainspring.store.ports import Store


class Told(Protocol):
    """Hears of every call when it is over."""

    def __call__(self, call: str, seconds: float, *, failed: bool) -> None: ...


def timed(store: Store, clock: Clock, told: Told) -> Store:
    """The same store; `told` hears how long each call took, waiting for a connection included."""
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
            began, failed = monotonic(), True
            try:
                answer = await found(*args, **kwargs)
                failed = False
                return answer
            finally:
                told(name, monotonic() - began, failed=failed)

        setattr(self, name, call)
        return call
