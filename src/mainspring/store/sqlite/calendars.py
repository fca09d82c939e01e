"""Business calendars on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.calendar import StoredCalendar
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database


class SQLiteCalendars:
    """CalendarStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_calendars(self, calendars: Sequence[StoredCalendar]) -> None:
        def work(session: Session) -> None:
            for each in calendars:
                session.change(
                    "put_calendar", name=each.name, version=each.version, definition=each.definition
                )

        await self._database.write(work)

    async def calendars(self) -> list[StoredCalendar]:
        def work(session: Session) -> list[StoredCalendar]:
            return [StoredCalendar(**dict(row)) for row in session.rows("calendars")]

        return await self._database.read(work)
