"""Business calendars on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.calendar import StoredCalendar
from mainspring.store.postgres.connection import Database


class PostgresCalendars:
    """CalendarStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_calendars(self, calendars: Sequence[StoredCalendar]) -> None:
        for each in calendars:
            await self._database.fetch(
                "put_calendar", name=each.name, version=each.version, definition=each.definition
            )

    async def calendars(self) -> list[StoredCalendar]:
        return [StoredCalendar(**dict(row)) for row in await self._database.fetch("calendars")]
