"""Business calendars that triggers name."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.schedule import StoredCalendar
from mainspring.store.database import Database, reads
from mainspring.store.rows import reader

_calendar = reader(StoredCalendar)


class Calendars:
    """Every version of every calendar. A version never changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, calendars: Sequence[StoredCalendar]) -> None:
        """Write these versions. A version that exists already is not changed."""
        for each in calendars:  # one statement each: it is repeated if its answer is lost
            await self._database.fetch(
                "put_calendar", name=each.name, version=each.version, definition=each.definition
            )

    @reads
    async def all(self) -> list[StoredCalendar]:
        """Every version of every calendar, by name and version."""
        return [_calendar(row) for row in await self._database.fetch("calendars")]
