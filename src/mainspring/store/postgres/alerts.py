"""Alerts and their notes on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

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
from mainspring.store.postgres.connection import Database, Transaction

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


class PostgresAlerts:
    """AlertStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def standing_alerts(self) -> list[Alert]:
        return [_alert(row) for row in await self._database.fetch("standing_alerts")]

    async def mark_watch(self, *, restart: timedelta, outage: timedelta, at: Stamp) -> datetime:
        [row] = await self._database.relaxed("mark_watch", restart=restart, outage=outage, at=at)
        since: datetime = row["since"]
        return since

    async def change_alerts(self, changes: Sequence[AlertChange], *, at: Stamp) -> int:
        async with self._database.transaction("change_alerts") as transaction:
            return sum([await _change(transaction, change, at) for change in changes])

    async def due_notes(self, *, limit: int, at: Stamp) -> list[Note]:
        return await self._notes(await self._database.fetch("due_notes", limit=limit, at=at))

    async def begin_notes(
        self, note_ids: Sequence[int], *, batch: str, lasts: timedelta, at: Stamp
    ) -> list[int]:
        taken = await self._database.fetch(
            "begin_notes", ids=sorted(note_ids), batch=batch, lasts=lasts, at=at
        )
        return sorted(row["id"] for row in taken)

    async def end_notes(self, end: NoteEnd, *, at: Stamp) -> int:
        ended = await self._database.fetch(
            "end_notes",
            ids=sorted(end.note_ids),
            batch=end.batch,
            state=end.state,
            problem=end.problem,
            again_in=end.again_in,
            at=at,
        )
        return len(ended)

    async def alerts(self, which: AlertFilter) -> list[Alert]:
        found = await self._database.fetch(
            "list_alerts",
            open=which.open,
            rule=which.rule,
            subject=which.subject,
            before=which.before,
            limit=which.limit,
        )
        return [_alert(row) for row in found]

    async def alert(self, alert_id: int) -> Alert | None:
        found = await self._database.fetch("alerts_by_id", ids=[alert_id])
        return _alert(found[0]) if found else None

    async def alert_notes(self, alert_id: int) -> list[Note]:
        return await self._notes(await self._database.fetch("alert_notes", alert_id=alert_id))

    async def undelivered_notes(self, *, limit: int) -> list[Note]:
        return await self._notes(await self._database.fetch("undelivered_notes", limit=limit))

    async def ack_alert(self, alert_id: int, *, author: str, at: Stamp) -> bool:
        return bool(await self._database.fetch("ack_alert", id=alert_id, author=author, at=at))

    async def prune_alerts(self, *, keep: timedelta, at: Stamp) -> int:
        async with self._database.transaction("prune_alerts") as transaction:
            await transaction.fetch("prune_notes", keep=keep, at=at)
            await transaction.fetch("prune_lost", keep=keep, at=at)
            await transaction.fetch("prune_gaps", keep=keep, at=at)
            return len(await transaction.fetch("prune_alerts", keep=keep, at=at))

    async def _notes(self, found: list[Record]) -> list[Note]:
        ids = sorted({row["alert_id"] for row in found})
        if not ids:
            return []
        alerts = {row["id"]: _alert(row) for row in await self._database.fetch("alerts_by_id", ids=ids)}
        # One that was pruned between the two reads is nobody's business any more.
        return [_note(row, alerts[row["alert_id"]]) for row in found if row["alert_id"] in alerts]


async def _change(transaction: Transaction, change: AlertChange, at: Stamp) -> bool:
    found = await _moved(transaction, change, at)
    for row in found:
        for note in change.notes:
            await transaction.fetch(
                "add_note",
                alert_id=row["id"],
                kind=note.kind,
                place=note.place,
                target=note.target,
                shown=note.shown,
                due_at=note.due_at,
                at=at,
            )
    return bool(found)


async def _moved(transaction: Transaction, change: AlertChange, at: Stamp) -> list[Record]:
    trouble = change.trouble
    if change.move is AlertMove.FORGOTTEN:
        return await transaction.fetch("forget_alert", id=change.alert_id)
    if change.alert_id:
        return await transaction.fetch(
            "move_alert",
            id=change.alert_id,
            move=change.move,
            place=change.place,
            severity=trouble and trouble.severity,
            sentence=trouble and trouble.sentence,
            at=at,
        )
    if trouble is None:
        return []
    return await transaction.fetch(
        "add_alert",
        uid=change.uid,
        rule=trouble.rule,
        subject=trouble.subject,
        severity=trouble.severity,
        sentence=trouble.sentence,
        since=trouble.since,
        opened=change.move is AlertMove.OPENED,
        at=at,
    )


def _note(row: Record, alert: Alert) -> Note:
    told = {name: value for name, value in row.items() if name not in ("alert_id", "kind", "state")}
    return Note(alert=alert, kind=NoteKind(row["kind"]), state=NoteState(row["state"]), **told)


def _alert(row: Record) -> Alert:
    told = {name: value for name, value in row.items() if name not in ("rule", "severity")}
    return Alert(rule=Rule(row["rule"]), severity=Severity(row["severity"]), **told)
