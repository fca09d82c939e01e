"""Alerts and their notes on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.model.alert import (
    Alert,
    AlertChange,
    AlertFilter,
    AlertMove,
    Note,
    NoteEnd,
    NoteKind,
    NoteState,
)
from mainspring.model.trouble import Rule, Severity
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, maybe_moment, maybe_span, micros, moment, span


class SQLiteAlerts:
    """AlertStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing_alerts(self) -> list[Alert]:
        return await self._database.read(
            lambda session: [_alert(row) for row in session.rows("standing_alerts")]
        )

    async def mark_watch(self, *, restart: timedelta, outage: timedelta, at: Stamp) -> datetime:
        def work(session: Session) -> datetime:
            now = session.now(at)
            session.change("note_gap", outage=span(outage), now=now)
            return moment(session.row("mark_watch", restart=span(restart), now=now)["since"])

        return await self._database.write(work, durable=False)

    async def change_alerts(self, changes: Sequence[AlertChange], *, at: Stamp) -> int:
        def work(session: Session) -> int:
            now = session.now(at)
            return sum(_change(session, change, now) for change in changes)

        return await self._database.write(work)

    async def due_notes(self, *, limit: int, at: Stamp) -> list[Note]:
        return await self._database.read(
            lambda session: _notes(session, session.rows("due_notes", now=session.now(at), limit=limit))
        )

    async def begin_notes(
        self, note_ids: Sequence[int], *, batch: str, lasts: timedelta, at: Stamp
    ) -> list[int]:
        def work(session: Session) -> list[int]:
            taken = session.rows(
                "begin_notes", ids=listed(note_ids), batch=batch, lasts=span(lasts), now=session.now(at)
            )
            return sorted(row["id"] for row in taken)

        return await self._database.write(work)

    async def end_notes(self, end: NoteEnd, *, at: Stamp) -> int:
        def work(session: Session) -> int:
            ended = session.rows(
                "end_notes",
                ids=listed(end.note_ids),
                batch=end.batch,
                state=end.state,
                problem=end.problem,
                again_in=maybe_span(end.again_in),
                now=session.now(at),
            )
            return len(ended)

        return await self._database.write(work)

    async def alerts(self, which: AlertFilter) -> list[Alert]:
        def work(session: Session) -> list[Alert]:
            found = session.rows(
                "list_alerts",
                open=which.open,
                rule=which.rule,
                subject=which.subject,
                before=which.before,
                limit=which.limit,
            )
            return [_alert(row) for row in found]

        return await self._database.read(work)

    async def alert(self, alert_id: int) -> Alert | None:
        def work(session: Session) -> Alert | None:
            found = session.rows("alerts_by_id", ids=listed([alert_id]))
            return _alert(found[0]) if found else None

        return await self._database.read(work)

    async def alert_notes(self, alert_id: int) -> list[Note]:
        return await self._database.read(
            lambda session: _notes(session, session.rows("alert_notes", alert_id=alert_id))
        )

    async def undelivered_notes(self, *, limit: int) -> list[Note]:
        return await self._database.read(
            lambda session: _notes(session, session.rows("undelivered_notes", limit=limit))
        )

    async def ack_alert(self, alert_id: int, *, author: str, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            return bool(session.rows("ack_alert", id=alert_id, author=author, now=session.now(at)))

        return await self._database.write(work)

    async def prune_alerts(self, *, keep: timedelta, at: Stamp) -> int:
        def work(session: Session) -> int:
            old = {"keep": span(keep), "now": session.now(at)}
            session.change("prune_notes", **old)
            session.change("prune_lost", **old)
            session.change("prune_gaps", **old)
            return len(session.rows("prune_alerts", **old))

        return await self._database.write(work)


def _change(session: Session, change: AlertChange, now: int) -> bool:
    alert_id = _moved(session, change, now)
    if alert_id is None:
        return False
    for note in change.notes:
        session.change(
            "add_note",
            alert_id=alert_id,
            kind=note.kind,
            place=note.place,
            target=note.target,
            shown=note.shown,
            due_at=micros(note.due_at),
            now=now,
        )
    return True


def _moved(session: Session, change: AlertChange, now: int) -> int | None:
    trouble = change.trouble
    if change.move is AlertMove.FORGOTTEN:
        found = session.rows("forget_alert", id=change.alert_id)
    elif change.alert_id:
        found = session.rows(
            "move_alert",
            id=change.alert_id,
            move=change.move,
            place=change.place,
            severity=trouble and trouble.severity,
            sentence=trouble and trouble.sentence,
            now=now,
        )
    elif trouble is not None:
        found = session.rows(
            "add_alert",
            uid=change.uid,
            rule=trouble.rule,
            subject=trouble.subject,
            severity=trouble.severity,
            sentence=trouble.sentence,
            since=micros(trouble.since),
            opened=change.move is AlertMove.OPENED,
            now=now,
        )
    else:
        found = []
    return found[0]["id"] if found else None


def _notes(session: Session, found: list[sqlite3.Row]) -> list[Note]:
    ids = {row["alert_id"] for row in found}
    alerts = {row["id"]: _alert(row) for row in session.rows("alerts_by_id", ids=listed(ids))}
    return [_note(row, alerts[row["alert_id"]]) for row in found]


def _note(row: sqlite3.Row, alert: Alert) -> Note:
    return Note(
        id=row["id"],
        alert=alert,
        kind=NoteKind(row["kind"]),
        place=row["place"],
        target=row["target"],
        shown=row["shown"],
        state=NoteState(row["state"]),
        due_at=moment(row["due_at"]),
        batch=row["batch"],
        tries=row["tries"],
        created_at=moment(row["created_at"]),
        ended_at=maybe_moment(row["ended_at"]),
        problem=row["problem"],
    )


def _alert(row: sqlite3.Row) -> Alert:
    return Alert(
        id=row["id"],
        uid=row["uid"],
        rule=Rule(row["rule"]),
        subject=row["subject"],
        severity=Severity(row["severity"]),
        sentence=row["sentence"],
        since=moment(row["since"]),
        seen_at=moment(row["seen_at"]),
        opened_at=maybe_moment(row["opened_at"]),
        clearing_at=maybe_moment(row["clearing_at"]),
        closed_at=maybe_moment(row["closed_at"]),
        repeats=row["repeats"],
        repeated_at=maybe_moment(row["repeated_at"]),
        acked_at=maybe_moment(row["acked_at"]),
        acked_by=row["acked_by"],
    )
