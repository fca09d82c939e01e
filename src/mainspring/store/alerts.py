"""Alerts and the notes about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.model.alert import Alert, AlertChange, AlertFilter, AlertMove, AlertNote, NoteEnd
from mainspring.store.audit_log import carried_out_alone
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.rows import moment, reader

_alert = reader(Alert)
_note = reader(AlertNote, given=["alert"])


class Alerts:
    """Alerts, and the notes about them. One process at a time writes them, under a lease. If two processes
    both believe that they have the lease, neither writes what the other has written."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @reads
    async def standing(self) -> list[Alert]:
        """Alerts that are not closed, also alerts without a sent note, oldest first."""
        return [_alert(row) for row in await self._database.fetch("standing_alerts")]

    async def mark_watch(self, *, restart: timedelta, outage: timedelta, at: Stamp) -> datetime:
        """Record that a process watches now. The answer is the moment since which a process has watched,
        without a break longer than `restart`. A break longer than `outage`, in which no process counted
        anything, is put on record once."""

        async def work(tx: Transaction) -> datetime:
            await tx.fetch("note_gap", outage=outage, at=at)
            [row] = await tx.fetch("mark_watch", restart=restart, at=at)
            return moment(row["since"])

        return await self._database.within("mark_watch", work, durable=False)

    async def change(self, changes: Sequence[AlertChange], *, at: Stamp) -> int:
        """Write changes of alerts, and their notes; answer how many changes were new."""

        async def work(tx: Transaction) -> int:
            return sum([await _change(tx, change, at) for change in changes])

        return await self._database.within("change_alerts", work)

    @reads
    async def due_notes(self, *, limit: int, at: Stamp) -> list[AlertNote]:
        """Notes to be sent now, oldest first: new notes, notes to be tried again, and notes that a process
        began to send and did not finish."""
        return await self._notes(await self._database.fetch("due_notes", limit=limit, at=at))

    async def begin_notes(
        self, note_ids: Sequence[int], *, batch: str, lasts: timedelta, at: Stamp
    ) -> list[int]:
        """Record that these notes are being sent, as one message with this id; answer the notes that were
        still due. A note that is not ended within `lasts` is due again."""
        taken = await self._database.fetch(
            "begin_notes", ids=sorted(note_ids), batch=batch, lasts=lasts, at=at
        )
        return sorted(row["id"] for row in taken)

    async def end_notes(self, end: NoteEnd, *, at: Stamp) -> int:
        """Record how the sending ended; answer how many notes were still being sent as this message."""
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

    @reads
    async def find(self, which: AlertFilter) -> list[Alert]:
        """Alerts of which a note was sent, newest first."""
        found = await self._database.fetch(
            "list_alerts",
            open=which.open,
            rule=which.rule,
            subject=which.subject,
            before=which.before,
            limit=which.limit,
        )
        return [_alert(row) for row in found]

    @reads
    async def get(self, alert_id: int) -> Alert | None:
        """One alert."""
        found = await self._database.fetch("alerts_by_id", ids=[alert_id])
        return _alert(found[0]) if found else None

    @reads
    async def notes(self, alert_id: int) -> list[AlertNote]:
        """The notes about one alert, sent or not, oldest first."""
        return await self._notes(await self._database.fetch("alert_notes", alert_id=alert_id))

    @reads
    async def undelivered_notes(self, *, limit: int) -> list[AlertNote]:
        """Notes that could not be delivered at their last try, newest first."""
        return await self._notes(await self._database.fetch("undelivered_notes", limit=limit))

    async def acknowledge(self, alert_id: int, *, author: str, at: Stamp) -> bool:
        """Acknowledge an alert, so that its notes are not repeated. False when the alert is not open, or is
        acknowledged already."""
        return await carried_out_alone(self._database, "ack_alert", bool, id=alert_id, author=author, at=at)

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Delete alerts that were closed `keep` ago or earlier, their notes, and lost processes of that age;
        answer how many alerts were deleted."""

        async def work(tx: Transaction) -> int:
            for statement in ("prune_notes", "prune_lost", "prune_gaps"):
                await tx.fetch(statement, keep=keep, at=at)
            return len(await tx.fetch("prune_alerts", keep=keep, at=at))

        return await self._database.within("prune_alerts", work)

    async def _notes(self, found: Sequence[Row]) -> list[AlertNote]:
        ids = sorted({row["alert_id"] for row in found})
        if not ids:
            return []
        alerts = {row["id"]: _alert(row) for row in await self._database.fetch("alerts_by_id", ids=ids)}
        # An alert that was pruned between the two reads has no notes any more.
        return [_note(row, alert=alerts[row["alert_id"]]) for row in found if row["alert_id"] in alerts]


async def _change(tx: Transaction, change: AlertChange, at: Stamp) -> bool:
    moved = await _moved(tx, change, at)
    for row in moved:
        for note in change.notes:
            await tx.fetch(
                "add_note",
                alert_id=row["id"],
                kind=note.kind,
                place=note.place,
                target=note.target,
                shown=note.shown,
                due_at=note.due_at,
                at=at,
            )
    return bool(moved)


async def _moved(tx: Transaction, change: AlertChange, at: Stamp) -> Sequence[Row]:
    trouble = change.trouble
    if change.move is AlertMove.FORGOTTEN:
        return await tx.fetch("forget_alert", id=change.alert_id)
    if change.alert_id:
        return await tx.fetch(
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
    return await tx.fetch(
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
