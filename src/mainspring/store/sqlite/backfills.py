"""Backfills on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mainspring.model.backfill import Advance, Backfill, BackfillJob, NewBackfill
from mainspring.store.backfilling import BATCH, MOST_ACTIVE, definition, note
from mainspring.store.ports import Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, maybe_span, micros, moment


class SQLiteBackfills:
    """BackfillStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_backfill(self, backfill: NewBackfill, *, at: Stamp) -> int:
        def work(session: Session) -> int:
            backfill_id: int = session.row(
                "add_backfill",
                schedule=backfill.schedule,
                start_at=micros(backfill.start),
                end_at=micros(backfill.end),
                author=backfill.author,
                max_active=backfill.max_active,
                reverse=backfill.reverse,
                reprocess=backfill.reprocess,
                now=session.now(at),
            )["id"]
            session.each(
                "add_backfill_slots",
                (
                    (backfill_id, place, slot.schedule_id, micros(slot.slot_at), slot.version, slot.seen)
                    for place, slot in enumerate(backfill.slots, start=1)
                ),
            )
            return backfill_id

        return await self._database.write(work)

    async def advance_backfills(self, *, at: Stamp) -> Advance:
        def look(session: Session) -> list[int]:
            return [row["id"] for row in session.rows("active_backfills", limit=MOST_ACTIVE)]

        def work(session: Session) -> int:
            made = sum(_advance(session, backfill_id, session.now(at)) for backfill_id in active)
            if made:
                session.hint()
            return made

        active = await self._database.read(look)
        return Advance(active=len(active), made=await self._database.write(work) if active else 0)

    async def cancel_backfill(self, backfill_id: int, *, author: str, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            return bool(
                session.rows("end_backfill", id=backfill_id, cancelled_by=author, now=session.now(at))
            )

        return await self._database.write(work)

    async def backfills(self, *, limit: int) -> list[Backfill]:
        def work(session: Session) -> list[Backfill]:
            return [rows.backfill(row) for row in session.rows("backfills", id=None, limit=limit)]

        return await self._database.read(work)

    async def backfill(self, backfill_id: int) -> Backfill | None:
        def work(session: Session) -> Backfill | None:
            found = session.rows("backfills", id=backfill_id, limit=1)
            return rows.backfill(found[0]) if found else None

        return await self._database.read(work)

    async def backfill_jobs(self, schedule_ids: Sequence[int], *, start: datetime) -> list[BackfillJob]:
        def work(session: Session) -> list[BackfillJob]:
            found = session.rows("backfill_jobs", schedule_ids=listed(schedule_ids), start=micros(start))
            return [
                BackfillJob(slot_at=moment(row["slot_at"]), job_id=row["job_id"], seen=row["seen_job_id"])
                for row in found
            ]

        return await self._database.read(work)


def _advance(session: Session, backfill_id: int, now: int) -> int:
    taken = session.rows("take_backfill", id=backfill_id)
    if not taken:
        return 0  # ended meanwhile
    [backfill] = taken
    pending = session.rows("pending_slots", backfill_id=backfill_id, limit=BATCH)
    if not pending and backfill["live"] == 0:
        session.rows("end_backfill", id=backfill_id, cancelled_by=None, now=now)
    made = 0
    for slot in pending:
        if backfill["live"] + made >= backfill["max_active"]:
            break
        made += _run(session, backfill, slot, now)
    return made


def _run(session: Session, backfill: sqlite3.Row, slot: sqlite3.Row, now: int) -> int:
    job_id = session.row("reserve_ids")["id"] + 1
    which = {"schedule_id": slot["schedule_id"], "slot_at": slot["slot_at"]}
    ours = session.rows(
        "backfill_slot",
        **which,
        job_id=job_id,
        seen_job_id=slot["seen_job_id"],
        note=note(backfill["id"], backfill["author"]),
        now=now,
    )
    if ours:
        then = definition(slot["definition"])
        session.change(
            "add_backfill_job",
            **which,
            id=job_id,
            queue=then.queue,
            task=then.task,
            priority=then.priority,
            max_attempts=then.max_attempts,
            payload=then.payload,
            line_id=then.line_id,
            expires_after=maybe_span(then.expires),
            backfill_id=backfill["id"],
            now=now,
        )
    session.change(
        "done_slot", backfill_id=backfill["id"], place=slot["place"], job_id=job_id if ours else None
    )
    return len(ours)
