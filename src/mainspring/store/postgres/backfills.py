"""Backfills on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from mainspring.model.backfill import Advance, Backfill, BackfillJob, NewBackfill
from mainspring.store.backfilling import BATCH, MOST_ACTIVE, definition, note
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.wake import Notifier

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


class PostgresBackfills:
    """BackfillStore on PostgreSQL."""

    def __init__(self, database: Database, names: Names, notifier: Notifier) -> None:
        self._database = database
        self._names = names
        self._notifier = notifier

    async def add_backfill(self, backfill: NewBackfill, *, at: Stamp) -> int:
        async with self._database.transaction("add_backfill") as transaction:
            [row] = await transaction.fetch(
                "add_backfill",
                schedule=backfill.schedule,
                start_at=backfill.start,
                end_at=backfill.end,
                author=backfill.author,
                max_active=backfill.max_active,
                reverse=backfill.reverse,
                reprocess=backfill.reprocess,
                at=at,
            )
            await transaction.fetch(
                "add_backfill_slots",
                backfill_id=row["id"],
                schedule_ids=[slot.schedule_id for slot in backfill.slots],
                slot_ats=[slot.slot_at for slot in backfill.slots],
                versions=[slot.version for slot in backfill.slots],
                seen_job_ids=[slot.seen for slot in backfill.slots],
            )
        backfill_id: int = row["id"]
        return backfill_id

    async def advance_backfills(self, *, at: Stamp) -> Advance:
        active = await self._database.relaxed("active_backfills", limit=MOST_ACTIVE)
        made = 0
        for row in active:
            async with self._database.transaction("advance_backfills") as transaction:
                made += await self._advance(transaction, row["id"], at)
        if made:
            self._notifier.poke()
        return Advance(active=len(active), made=made)

    async def cancel_backfill(self, backfill_id: int, *, author: str, at: Stamp) -> bool:
        return bool(await self._database.fetch("end_backfill", id=backfill_id, cancelled_by=author, at=at))

    async def backfills(self, *, limit: int) -> list[Backfill]:
        return [rows.backfill(row) for row in await self._database.fetch("backfills", id=None, limit=limit)]

    async def backfill(self, backfill_id: int) -> Backfill | None:
        found = await self._database.fetch("backfills", id=backfill_id, limit=1)
        return rows.backfill(found[0]) if found else None

    async def backfill_jobs(self, schedule_ids: Sequence[int], *, start: datetime) -> list[BackfillJob]:
        found = await self._database.fetch("backfill_jobs", schedule_ids=list(schedule_ids), start=start)
        return [
            BackfillJob(slot_at=row["slot_at"], job_id=row["job_id"], seen=row["seen_job_id"])
            for row in found
        ]

    async def _advance(self, transaction: Transaction, backfill_id: int, at: Stamp) -> int:
        taken = await transaction.fetch("take_backfill", id=backfill_id)
        if not taken:
            return 0  # ended, or another scheduler is at it
        [backfill] = taken
        pending = await transaction.fetch("pending_slots", backfill_id=backfill_id, limit=BATCH)
        if not pending and backfill["live"] == 0:
            await transaction.fetch("end_backfill", id=backfill_id, cancelled_by=None, at=at)
        made = 0
        for slot in pending:
            if backfill["live"] + made >= backfill["max_active"]:
                break
            made += await self._run(transaction, backfill, slot, at)
        return made

    async def _run(self, transaction: Transaction, backfill: Record, slot: Record, at: Stamp) -> int:
        [reserved] = await transaction.fetch("reserve_ids", count=1)
        [job_id] = reserved["ids"]
        which = {"schedule_id": slot["schedule_id"], "slot_at": slot["slot_at"]}
        ours = await transaction.fetch(
            "backfill_slot",
            **which,
            job_id=job_id,
            seen_job_id=slot["seen_job_id"],
            note=note(backfill["id"], backfill["author"]),
            at=at,
        )
        if ours:
            then = definition(slot["definition"])
            # A version's queue and task were numbered when it was written.
            await self._names.know([then.queue], [then.task], within=transaction)
            await transaction.fetch(
                "add_backfill_job",
                **which,
                id=job_id,
                queue_id=self._names.known_queue(then.queue),
                task_id=self._names.known_task(then.task),
                priority=then.priority,
                max_attempts=then.max_attempts,
                payload=then.payload,
                line_id=then.line_id,
                expires_after=then.expires,
                backfill_id=backfill["id"],
                at=at,
            )
        await transaction.fetch(
            "done_slot", backfill_id=backfill["id"], place=slot["place"], job_id=job_id if ours else None
        )
        return len(ours)
