"""Specs, fires and the ledger on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.model.schedule import Chunk, Drop, Opening, Skipped, SlotFacts, Spec
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.wake import Notifier
from mainspring.trigger.misfire import BREAKER, LATE


class PostgresFiring:
    """The scheduler's half of ScheduleStore on PostgreSQL."""

    def __init__(self, database: Database, notifier: Notifier) -> None:
        self._database = database
        self._notifier = notifier

    async def due_specs(
        self, *, limit: int, beside: Sequence[int] = (), at: Stamp
    ) -> tuple[datetime, list[Spec]]:
        found = await self._database.relaxed(
            "due_specs", limit=limit, beside=list(beside), missed_after=LATE, at=at
        )
        [row] = await self._database.relaxed("now", at=at)
        return row["now"], [rows.spec(row) for row in found]

    async def unplanned_specs(self, *, limit: int) -> list[Spec]:
        return [rows.spec(row) for row in await self._database.relaxed("unplanned_specs", limit=limit)]

    async def plan_specs(self, specs: Sequence[Spec]) -> None:
        specs = sorted(specs, key=lambda spec: spec.id)
        await self._database.relaxed(
            "plan_specs",
            ids=[spec.id for spec in specs],
            next_ats=[spec.next_at for spec in specs],
            following_ats=[spec.following_at for spec in specs],
        )

    async def open_fires(self, openings: Sequence[Opening], *, at: Stamp) -> int:
        openings = sorted(openings, key=lambda opening: opening.spec_id)
        opened = await self._database.fetch(
            "open_fires",
            spec_ids=[opening.spec_id for opening in openings],
            expecteds=[opening.expected for opening in openings],
            slot_ats=[opening.slot_at for opening in openings],
            sinces=[opening.since for opening in openings],
            combineds=[rows.combined(opening) for opening in openings],
            next_ats=[opening.next_at for opening in openings],
            skips=[opening.skip for opening in openings],
            notes=[opening.note for opening in openings],
            previous_ats=[opening.previous for opening in openings],
        )
        return len(opened)

    async def fire(self, *, limit: int, breaker: int = BREAKER, at: Stamp) -> Chunk | None:
        while True:
            taken = await self._database.fetch("fire", limit=limit, breaker=breaker, missed_after=LATE, at=at)
            if not taken:
                return None
            [row] = taken
            if row["fresh"]:
                break
        if row["fired"]:
            self._notifier.poke(row["fired"])
        return Chunk(
            slot_at=row["slot_at"],
            fired=row["fired"],
            skipped=row["skipped"],
            late=row["now"] - row["slot_at"],
            since=row["since"],
            dropped=tuple(
                Drop(schedule=name, reason=reason)
                for reason in (Skipped.TOO_LATE, Skipped.BREAKER)
                for name in row[reason]
            ),
        )

    async def slot_facts(self, schedule_id: int, slot_at: datetime) -> SlotFacts:
        [row] = await self._database.fetch("slot_facts", schedule_id=schedule_id, slot_at=slot_at)
        return rows.slot_facts(row)

    async def release_held(self, *, at: Stamp) -> int:
        released = await self._database.fetch("release_held", at=at)
        if released:
            self._notifier.poke(len(released))
        return len(released)

    async def next_due(self, *, beside: Sequence[int] = (), at: Stamp) -> timedelta | None:
        found = await self._database.relaxed("next_due", beside=list(beside), at=at)
        wait: timedelta | None = found[0]["wait"] if found else None
        return wait
