"""Schema and life of the store, and hints."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Protocol

from mainspring.store.ports.stamp import Stamp


class Admin(Protocol):
    """Schema and life of the store itself."""

    async def now(self, *, at: Stamp) -> datetime:
        """The store's clock, or the stamp."""

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop history (runs, their logs and the ledger) of the whole UTC days that ended `keep` ago or
        earlier, steps and events of that age whose job nobody knows any more, and everybody's events of
        that age, and see to it that there is room for the days ahead. Dead letters are never touched.
        Answers how many rows or partitions went: zero means there was nothing."""

    async def migrate(self) -> list[str]:
        """Bring the schema up to this code's version; answer what was applied. Safe to run twice,
        in two places at once, and again after being killed."""

    async def verify(self) -> None:
        """Raise SchemaMismatch unless the schema is exactly this code's."""

    async def identity(self) -> str:
        """The random id that the database got with its schema: a UUID in its usual form."""

    async def change_identity(self, new: str, *, force: bool, at: Stamp) -> str | None:
        """Give the database another id; answer the one it had. While a member is alive, nothing is changed
        and None is answered, unless `force`: a process keeps the id it has learnt."""

    async def close(self) -> None:
        """Send pending hints and let go of every connection and thread."""


class Waker(Protocol):
    """Keeps hints coming; runs as a loop. Losing a hint costs latency only."""

    name: str

    @property
    def deaf(self) -> str | None:
        """Why no hint can come, so that jobs are found by looking alone; None when they can."""

    async def tick(self) -> timedelta:
        """One pass: listen or look; answer how long to wait."""

    async def close(self) -> None:
        """Stop listening."""


class Wakeups(Protocol):
    """Hints that work may exist."""

    def waker(self, on_hint: Callable[[], None]) -> Waker:
        """A loop that calls `on_hint`, on the running event loop, when jobs may have come in."""
