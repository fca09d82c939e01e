"""Alerts: troubles that somebody is told of, and what is said to whom."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.trouble import Rule, Severity, Trouble
from mainspring.model.value import Value


class AlertMove(StrEnum):
    """What happens to an alert. Each is written only if it has not happened yet."""

    OPENED = "opened"
    """It has been wrong for long enough."""
    CLEARING = "clearing"
    """It is not seen any more."""
    STANDING = "standing"
    """It is seen again."""
    REPEATED = "repeated"
    CLOSED = "closed"
    """It was not seen for long enough."""
    FORGOTTEN = "forgotten"
    """It passed before anybody was to be told."""


class NoteKind(StrEnum):
    """What a note says."""

    OPENED = "opened"
    REPEATED = "repeated"
    RECOVERED = "recovered"


class NoteState(StrEnum):
    """How far a note has come."""

    WAITING = "waiting"
    SENDING = "sending"
    """Somebody is about to send it, or has and could not write so: then it is sent again, with its id."""
    SENT = "sent"
    FAILED = "failed"
    """Given up."""


class Alert(Value, frozen=True, kw_only=True):
    """An alert on record."""

    id: int
    uid: int
    """Random: with it receivers know a note they have had already."""
    rule: Rule
    subject: str
    severity: Severity
    sentence: str
    since: datetime
    """When what is wrong began."""
    seen_at: datetime
    opened_at: datetime | None
    """None while it is not yet sure that anybody is to be told."""
    clearing_at: datetime | None
    closed_at: datetime | None
    repeats: int
    repeated_at: datetime | None
    acked_at: datetime | None
    acked_by: str | None


class NewNote(Value, frozen=True, kw_only=True):
    """Something to be said to one target."""

    kind: NoteKind
    target: str
    """A digest of its address, which may hold a secret."""
    shown: str
    due_at: datetime
    place: int = 0
    """Of repeats, which."""


class AlertChange(Value, frozen=True, kw_only=True):
    """A move of one alert, or a new one, and what is to be said of it: both are written, or neither."""

    notes: tuple[NewNote, ...] = ()
    alert_id: int = 0
    move: AlertMove | None = None
    """None for a trouble that was first seen now; OPENED with no id for one that opens at once."""
    trouble: Trouble | None = None
    uid: int = 0
    place: int = 0


class Note(Value, frozen=True, kw_only=True):
    """A note on record, with its alert."""

    id: int
    alert: Alert
    kind: NoteKind
    place: int
    target: str
    shown: str
    state: NoteState
    due_at: datetime
    batch: str | None
    tries: int
    created_at: datetime
    ended_at: datetime | None
    problem: str | None


class NoteEnd(Value, frozen=True, kw_only=True):
    """What came of sending notes together."""

    note_ids: tuple[int, ...]
    batch: str
    problem: str | None = None
    again_in: timedelta | None = None
    """With a problem: None gives up."""

    @property
    def state(self) -> NoteState:
        """How the notes stand afterwards."""
        if self.problem is None:
            return NoteState.SENT
        return NoteState.FAILED if self.again_in is None else NoteState.WAITING


class AlertFilter(Value, frozen=True, kw_only=True):
    """Which alerts to list, newest first; `before` is the last id of the page above."""

    open: bool | None = None
    rule: Rule | None = None
    subject: str | None = None
    before: int | None = None
    limit: int = 50
