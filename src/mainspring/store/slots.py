"""Slots: the slots that are due, their firings and the ledger.

Schedules with the same trigger share a spec. A scheduler opens a due slot of a spec as a firing. A firing is
carried out in parts: each part writes the ledger rows and the jobs of some schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

import msgspec

from mainspring.model.schedule import (
    Chunk,
    ComingFire,
    DeletedSlots,
    Opening,
    Schedule,
    Slot,
    SlotFacts,
    Spec,
)
from mainspring.store.codes import COALESCE, DISPOSITION, catch_up_read
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.declaring import Due
from mainspring.store.rows import length, maybe_length, moment, reader
from mainspring.triggers.misfire import BREAKER, LATE

_definition = msgspec.json.Decoder(Schedule)


def _trigger(row: Row) -> str | None:
    text = row["definition"]
    return None if text is None else _definition.decode(text).trigger


read_spec = reader(
    Spec,
    one_by_one=lambda row: length(row["catch_up"]) != COALESCE,
    catch_up=lambda row: catch_up_read(length(row["catch_up"])),
)
read_slot = reader(Slot, disposition=lambda row: DISPOSITION[row["disposition"]])
_facts = reader(SlotFacts, trigger=_trigger)
_coming = reader(ComingFire)
_deleted = reader(DeletedSlots)


class Firing(Protocol):
    """Writes the slots of many schedules at once. Each dialect does so in its own way, for speed."""

    async def fire(self, *, limit: int, breaker: int, at: Stamp) -> Chunk | None:
        """As `Slots.fire`."""

    async def decide(self, tx: Transaction, due: Sequence[Due], *, at: datetime) -> int:
        """Write the rows that a firing would write for these slots, one slot for each schedule; answer how
        many jobs were made. The caller has locked the schedules."""

    def combined(self, opening: Opening) -> str | None:
        """The missed slots that a firing combines, as the store keeps them."""


class Slots:
    """Specs, firings and the ledger."""

    def __init__(self, database: Database, firing: Firing) -> None:
        self._database = database
        self._firing = firing

    @reads
    async def due_specs(
        self, *, limit: int, beside: Sequence[int] = (), at: Stamp
    ) -> tuple[datetime, list[Spec]]:
        """The store's now, and the specs whose `next_at` has come, earliest first. Specs in `beside`
        are left out: these are a few specs that the caller cannot open."""
        found = await self._database.relaxed(
            "due_specs", limit=limit, beside=list(beside), missed_after=LATE, at=at
        )
        now = moment(found[0]["now"])
        return now, [read_spec(row) for row in found if row["id"] is not None]

    @reads
    async def unplanned_specs(self, *, limit: int) -> list[Spec]:
        """Specs whose `following_at` is not yet known."""
        return [read_spec(row) for row in await self._database.relaxed("unplanned_specs", limit=limit)]

    async def plan_specs(self, specs: Sequence[Spec]) -> None:
        """Write `following_at`, if the spec still has the same `next_at`."""
        planned = [
            {"id": spec.id, "next_at": spec.next_at, "following_at": spec.following_at}
            for spec in sorted(specs, key=lambda spec: spec.id)
        ]
        await self._database.each("plan_specs", planned, durable=False)

    async def open_firings(self, openings: Sequence[Opening], *, at: Stamp) -> int:
        """Write the next `next_at` of each spec and open a firing for its slot, if the spec still has the
        `next_at` in `expected`. The answer is the number of firings that this call opened."""
        opened = await self._database.each(
            "open_firings",
            [
                {
                    "spec_id": opening.spec_id,
                    "expected": opening.expected,
                    "slot_at": opening.slot_at,
                    "since": opening.since,
                    "combined": self._firing.combined(opening),
                    "next_at": opening.next_at,
                    "skip": opening.skip,
                    "note": opening.note,
                    "previous_at": opening.previous,
                }
                for opening in sorted(openings, key=lambda opening: opening.spec_id)
            ],
        )
        return len(opened)

    async def fire(self, *, limit: int, breaker: int = BREAKER, at: Stamp) -> Chunk | None:
        """Take the oldest open firing. Write the ledger rows and jobs of its next `limit` schedules, and its
        cursor, in one transaction. None when this process can take no firing. A schedule that catches up
        every missed slot, without a bound, gets no more of these jobs while it has `breaker` live jobs."""
        return await self._firing.fire(limit=limit, breaker=breaker, at=at)

    async def release_held(self, *, at: Stamp) -> int:
        """Make due the oldest held jobs of each schedule, if the jobs before them have ended, as many as the
        overlap policy allows at once; answer how many jobs."""
        released = await self._database.fetch("release_held", at=at)
        if released:
            self._database.hint(len(released))
        return len(released)

    @reads
    async def next_due(self, *, beside: Sequence[int] = (), at: Stamp) -> timedelta | None:
        """The time until the earliest spec that is not in `beside` is due (not negative), by the store's
        clock."""
        [row] = await self._database.relaxed("next_due", beside=list(beside), at=at)
        return maybe_length(row["wait"])

    @reads
    async def facts(self, schedule_id: int, slot_at: datetime) -> SlotFacts:
        """The facts on record about a slot of a schedule, also of a deleted schedule."""
        [row] = await self._database.fetch("slot_facts", schedule_id=schedule_id, slot_at=slot_at)
        return _facts(row)

    @reads
    async def deleted(self, schedules: Sequence[str], *, since: datetime) -> list[DeletedSlots]:
        """The slots of these schedules that were due when the schedules were deleted, at `since` or later, by
        schedule."""
        found = await self._database.fetch("slots_deleted", names=list(schedules), since=since)
        return [_deleted(row) for row in found]

    @reads
    async def of(
        self,
        schedule: str,
        *,
        limit: int,
        start: datetime | None = None,
        before: datetime | None = None,
    ) -> list[Slot]:
        """The ledger of one schedule, newest slot first: slots from `start` on and before `before`."""
        found = await self._database.fetch(
            "slots", schedule=schedule, start=start, before=before, limit=limit
        )
        return [read_slot(row) for row in found]

    @reads
    async def coming(self, *, limit: int) -> list[ComingFire]:
        """The next slots, earliest first, one for each schedule. It reads a bounded number of rows."""
        return [_coming(row) for row in await self._database.fetch("coming", limit=limit)]
