"""A store that says so before it changes anything. Whatever is not known to read is taken to change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mainspring.store.around import Method, around
from mainspring.store.ports import Store
from mainspring.store.reads import only_reads

# fmt: off
READS = frozenset({
    "now", "verify", "identity", "close", "waker",
})
# fmt: on


class Witness:
    """Everything a store answers, and `changing` is awaited before the first call that may change it."""

    def __init__(self, store: Store, changing: Callable[[Store], Awaitable[None]]) -> None:
        self._plain, self._changing = store, changing
        self._store = around(store, self._call)
        self._begun = False
        self._beginning = asyncio.Lock()
        self.calls: list[str] = []
        """What changed it, by name, each once."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def _call(self, name: str, method: Method, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if name not in READS and not only_reads(method):
            await self._begin(name)
        return await method(*args, **named)

    async def migrate(self) -> list[str]:
        """There is no log to say it in before: it is said of what was done."""
        applied = await self._plain.migrate()
        if applied:
            await self._begin("migrate")
        return applied

    async def _begin(self, name: str) -> None:
        async with self._beginning:
            if name not in self.calls:
                self.calls.append(name)
            if not self._begun:
                await self._changing(self._plain)
                self._begun = True
