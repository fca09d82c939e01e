"""Backfills: slots of the past, run on request."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from mainspring.model.schedule import Advance, Backfill, BackfillJob, BackfillState, NewBackfill, Schedule
from mainspring.store.audit_log import carried_out, carried_out_alone
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.rows import moment, reader

BATCH = 100
"""The number of jobs that one transaction makes for one backfill, at most."""
MOST_ACTIVE = 100
"""The number of backfills that one pass reads, at most."""

_schedule = msgspec.json.Decoder(Schedule)


def _state(row: Row) -> BackfillState:
    if row["ended_at"] is None:
        return BackfillState.ACTIVE
    return BackfillState.DONE if row["cancelled_by"] is None else BackfillState.CANCELLED


_backfill = reader(
    Backfill,
    start=lambda row: moment(row["start_at"]),
    end=lambda row: moment(row["end_at"]),
    state=_state,
    left=lambda row: row["left_alone"],
)
_job = reader(BackfillJob, seen=lambda row: row["seen_job_id"])


class Backfills:
    """Backfills and their slots. Schedulers make the jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, backfill: NewBackfill, *, at: Stamp) -> int:
        """Write a backfill with all its slots; answer its id."""

        async def work(tx: Transaction) -> int:
            [row] = await tx.fetch(
                "add_backfill",
                schedule=backfill.schedule,
                start_at=backfill.start,
                end_at=backfill.end,
                author=backfill.author,
                max_active=backfill.max_active,
                reverse=backfill.reverse,
                reprocess=backfill.reprocess.value,
                at=at,
            )
            slots = [
                {
                    "place": place,
                    "schedule_id": slot.schedule_id,
                    "slot_at": slot.slot_at,
                    "version": slot.version,
                    "seen_job_id": slot.seen,
                }
                for place, slot in enumerate(backfill.slots, start=1)
            ]
            await tx.each("add_backfill_slots", slots, backfill_id=row["id"])
            backfill_id: int = row["id"]
            return backfill_id

        return await carried_out(self._database, "add_backfill", work)

    async def advance(self, *, at: Stamp) -> Advance:
        """Make jobs for the next slots of every active backfill, as many as may be live at once. The row in
        the ledger is written in the same transaction. A backfill without slots and live jobs ends."""
        active = await self._database.relaxed("active_backfills", limit=MOST_ACTIVE)
        made = 0
        for row in active:
            backfill_id: int = row["id"]

            async def work(tx: Transaction, backfill_id: int = backfill_id) -> int:
                return await _advance(tx, backfill_id, at)

            made += await self._database.within("advance_backfill", work)
        return Advance(active=len(active), made=made)

    async def cancel(self, backfill_id: int, *, author: str, at: Stamp) -> bool:
        """Make no more jobs for this backfill. Its live jobs go on. False when the backfill is not active."""
        return await carried_out_alone(
            self._database, "end_backfill", bool, id=backfill_id, cancelled_by=author, at=at
        )

    @reads
    async def all(self, *, limit: int, schedule: str | None = None) -> list[Backfill]:
        """Backfills, newest first. For one schedule, the active backfills are always included."""
        found = await self._database.fetch("backfills", id=None, schedule=schedule, limit=limit)
        return [_backfill(row) for row in found]

    @reads
    async def get(self, backfill_id: int) -> Backfill | None:
        """One backfill."""
        found = await self._database.fetch("backfills", id=backfill_id, schedule=None, limit=1)
        return _backfill(found[0]) if found else None

    @reads
    async def jobs(self, schedule_ids: Sequence[int], *, start: datetime) -> list[BackfillJob]:
        """Jobs that backfills made for slots of these schedules, from `start` on."""
        found = await self._database.fetch("backfill_jobs", schedule_ids=list(schedule_ids), start=start)
        return [_job(row) for row in found]


async def _advance(tx: Transaction, backfill_id: int, at: Stamp) -> int:
    taken = await tx.fetch("take_backfill", id=backfill_id)
    if not taken:
        return 0  # the backfill has ended, or another scheduler advances it
    [backfill] = taken
    pending = await tx.fetch("pending_slots", backfill_id=backfill_id, limit=BATCH)
    if not pending and backfill["live"] == 0:
        await tx.fetch("end_backfill", id=backfill_id, cancelled_by=None, at=at)
    made = 0
    for slot in pending:
        if backfill["live"] + made >= backfill["max_active"]:
            break
        made += await _run(tx, backfill, slot, at)
    if made:
        tx.hint()
    return made


async def _run(tx: Transaction, backfill: Row, slot: Row, at: Stamp) -> int:
    """Make the job of a slot, unless another job has been made for the slot since the backfill was
    planned."""
    [row] = await tx.fetch("next_job_id")
    which = {"schedule_id": slot["schedule_id"], "slot_at": moment(slot["slot_at"])}
    ours = await tx.fetch(
        "backfill_slot",
        **which,
        job_id=row["id"],
        seen_job_id=slot["seen_job_id"],
        note=f"backfill {backfill['id']} by {backfill['author']}",
        at=at,
    )
    if ours:
        then = _schedule.decode(slot["definition"])
        await tx.fetch(
            "add_backfill_job",
            **which,
            id=row["id"],
            queue=then.queue,
            task=then.task,
            priority=then.priority,
            max_attempts=then.max_attempts,
            payload=then.payload,
            limit_set_id=then.limit_set_id,
            expires_after=then.expires,
            backfill_id=backfill["id"],
            at=at,
        )
    await tx.fetch(
        "done_slot", backfill_id=backfill["id"], place=slot["place"], job_id=row["id"] if ours else None
    )
    return len(ours)
