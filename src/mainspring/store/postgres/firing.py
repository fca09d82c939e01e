"""Firing on PostgreSQL: one statement writes the slots of many schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.model.schedule import Chunk, Drop, Opening, Skipped
from mainspring.store.database import Stamp, Transaction
from mainspring.store.declaring import NO_BREAKER, Due
from mainspring.store.postgres.connection import Database
from mainspring.store.rows import written
from mainspring.triggers.misfire import LATE


class PostgresFiring:
    """Firing on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fire(self, *, limit: int, breaker: int, at: Stamp) -> Chunk | None:
        while True:
            taken = await self._database.fetch("fire", limit=limit, breaker=breaker, missed_after=LATE, at=at)
            if not taken:
                return None
            [row] = taken
            if row["fresh"]:
                break
        if row["fired"]:
            self._database.hint(row["fired"])
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

    async def decide(self, tx: Transaction, due: Sequence[Due], *, at: datetime) -> int:
        [row] = await tx.fetch(
            "decide_slots",
            ids=[one.schedule.id for one in due],
            slot_ats=[one.opening.slot_at for one in due],
            sinces=[one.opening.since for one in due],
            combineds=[self.combined(one.opening) for one in due],
            skips=[one.skip for one in due],
            notes=[one.opening.note for one in due],
            missed_after=LATE,
            breaker=NO_BREAKER,
            at=at,
        )
        made: int = row["fired"]
        return made

    def combined(self, opening: Opening) -> str | None:
        return written(opening.combined) if opening.combined else None
