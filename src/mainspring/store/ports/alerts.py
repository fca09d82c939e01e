"""Alerts and the notes about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mainspring.model.alert import Alert, AlertChange, AlertFilter, Note, NoteEnd
from mainspring.store.ports.stamp import Stamp


class AlertStore(Protocol):
    """What is wrong and who was told. One process at a time keeps it, under a lease; should two think they
    are that one, neither writes what the other has written."""

    async def standing_alerts(self) -> list[Alert]:
        """Those that are not closed, also those that nobody is told of yet, oldest first."""

    async def mark_watch(self, *, restart: timedelta, outage: timedelta, at: Stamp) -> datetime:
        """Say that somebody watches now; answer since when somebody has, without a break longer than
        `restart`. A break longer than `outage` in which nothing was counted either is put on record, once."""

    async def change_alerts(self, changes: Sequence[AlertChange], *, at: Stamp) -> int:
        """Write moves and the notes that go with them; answer how many were not there already."""

    async def due_notes(self, *, limit: int, at: Stamp) -> list[Note]:
        """Notes that are to be sent now, oldest first: new ones, those to be tried again, and those that
        somebody began to send and never finished."""

    async def begin_notes(
        self, note_ids: Sequence[int], *, batch: str, lasts: timedelta, at: Stamp
    ) -> list[int]:
        """Say that these are being sent, as one message with this id; answer those that were still due.
        If nobody ends them for so long, they are due again."""

    async def end_notes(self, end: NoteEnd, *, at: Stamp) -> int:
        """Say what came of it; answer how many were still under way as this message."""

    async def alerts(self, which: AlertFilter) -> list[Alert]:
        """Alerts that somebody was told of, newest first."""

    async def alert(self, alert_id: int) -> Alert | None:
        """One of them."""

    async def alert_notes(self, alert_id: int) -> list[Note]:
        """What was or will be said of one alert, oldest first."""

    async def undelivered_notes(self, *, limit: int) -> list[Note]:
        """Notes that did not get through at their last try, newest first."""

    async def ack_alert(self, alert_id: int, *, author: str, at: Stamp) -> bool:
        """Somebody knows: it is not repeated. False when it is not open, or acknowledged already."""

    async def prune_alerts(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop alerts that were closed so long ago, their notes, and who was lost before that; answer how
        many alerts."""
