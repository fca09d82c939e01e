"""Hints on SQLite: look whether anybody has committed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database

LOOK_EVERY = timedelta(milliseconds=20)


class SQLiteWaker:
    """Calls `on_hint` when another connection has committed or this store has made jobs due; the
    first look always hints, for what happened before it."""

    name = "waker"
    deaf = None

    def __init__(self, database: Database, on_hint: Callable[[], None]) -> None:
        self._database = database
        self._on_hint = on_hint
        self._seen: tuple[int, int] | None = None

    async def tick(self) -> timedelta:
        seen = await self._database.read(_data_version), self._database.hints
        if seen != self._seen:
            self._seen = seen
            self._on_hint()
        return LOOK_EVERY

    async def close(self) -> None:
        """Nothing is kept open between two looks."""


def _data_version(session: Session) -> int:
    version: int = session.row("data_version")["data_version"]
    return version
