"""What runs say of themselves, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from mainspring.model.report import Ending, Progress, ProgressNote, RunLog
from mainspring.model.settlement import Settlement
from mainspring.store.codes import FINAL_STATE
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.rows import failure
from mainspring.store.reporting import BATCH, SETTLED, day_before

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


class PostgresReports:
    """ReportStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note_progress(self, notes: Sequence[ProgressNote], *, at: Stamp) -> None:
        ordered = sorted(notes, key=lambda note: note.job_id)
        await self._database.relaxed(
            "note_progress",
            job_ids=[note.job_id for note in ordered],
            worker_ids=[note.worker_id for note in ordered],
            fences=[note.fence for note in ordered],
            fractions=[note.fraction for note in ordered],
            notes=[note.note for note in ordered],
            at=at,
        )

    async def progress(self, job_id: int) -> Progress | None:
        found = await self._database.fetch("progress", job_id=job_id)
        return Progress(**found[0]) if found else None

    async def sweep_progress(self, *, at: Stamp) -> int:
        return await self._until_none("sweep_progress", await self._now(at) - SETTLED)

    async def run_logs(self, job_id: int) -> list[RunLog]:
        return [RunLog(**row) for row in await self._database.fetch("run_logs", job_id=job_id)]

    async def drop_results(self, *, keep: timedelta, at: Stamp) -> int:
        return await self._until_none("drop_results", day_before(await self._now(at), keep))

    async def endings(self, job_ids: Sequence[int]) -> dict[int, Ending]:
        found = await self._database.fetch("endings", ids=sorted(job_ids))
        return {row["id"]: _ending(row) for row in found}

    async def _now(self, at: Stamp) -> datetime:
        [row] = await self._database.relaxed("now", at=at)
        now: datetime = row["now"]
        return now

    async def _until_none(self, statement: str, before: datetime) -> int:
        gone = 0
        while rows := await self._database.fetch(statement, before=before, limit=BATCH):
            gone += len(rows)
        return gone


async def note_logs(
    transaction: Transaction, settlements: Sequence[Settlement], settled: set[int], at: Stamp
) -> None:
    """Keep what was captured of the runs that were settled, in the same transaction."""
    logged = [s for s in settlements if s.log is not None and s.job_id in settled]
    if logged:
        await transaction.fetch(
            "note_logs",
            job_ids=[s.job_id for s in logged],
            worker_ids=[s.worker_id for s in logged],
            fences=[s.fence for s in logged],
            texts=[s.log for s in logged],
            at=at,
        )


def _ending(row: Record) -> Ending:
    return Ending(
        state=FINAL_STATE[row["verdict"]],
        result=row["result"],
        failure=failure(row["error"]),
        reason=row["reason"],
    )
