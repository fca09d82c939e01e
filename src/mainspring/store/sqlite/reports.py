"""What runs say of themselves, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.model.report import Ending, Progress, ProgressNote, RunLog
from mainspring.model.settlement import Settlement
from mainspring.store.codes import FINAL_STATE
from mainspring.store.ports import Stamp
from mainspring.store.reporting import BATCH, SETTLED, day_before
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import errors, listed, micros, moment, span


class SQLiteReports:
    """ReportStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note_progress(self, notes: Sequence[ProgressNote], *, at: Stamp) -> None:
        rows = listed((n.job_id, n.worker_id, n.fence, n.fraction, n.note) for n in notes)

        def work(session: Session) -> None:
            session.change("note_progress", notes=rows, now=session.now(at))

        await self._database.write(work, durable=False)

    async def progress(self, job_id: int) -> Progress | None:
        def work(session: Session) -> Progress | None:
            found = session.rows("progress", job_id=job_id)
            return Progress(**{**found[0], "at": moment(found[0]["at"])}) if found else None

        return await self._database.read(work)

    async def sweep_progress(self, *, at: Stamp) -> int:
        def work(session: Session) -> int:
            before = session.now(at) - span(SETTLED)
            return session.change("sweep_progress", before=before, limit=BATCH)

        gone = 0
        while count := await self._database.write(work, durable=False):
            gone += count
        return gone

    async def run_logs(self, job_id: int) -> list[RunLog]:
        def work(session: Session) -> list[RunLog]:
            found = session.rows("run_logs", job_id=job_id)
            return [RunLog(**{**row, "finished_at": moment(row["finished_at"])}) for row in found]

        return await self._database.read(work)

    async def drop_results(self, *, keep: timedelta, at: Stamp) -> int:
        now = await self._database.read(lambda session: moment(session.now(at)))
        before, gone = micros(day_before(now, keep)), 0
        while count := await self._database.write(
            lambda session: session.change("drop_results", before=before, limit=BATCH)
        ):
            gone += count
        return gone

    async def endings(self, job_ids: Sequence[int]) -> dict[int, Ending]:
        def work(session: Session) -> dict[int, Ending]:
            return {
                row["id"]: Ending(
                    state=FINAL_STATE[row["verdict"]],
                    result=row["result"],
                    failure=next(reversed(errors(row["errors"])), None),
                    reason=row["reason"],
                )
                for row in session.rows("endings", ids=listed(job_ids))
            }

        return await self._database.read(work)


def note_logs(session: Session, settlements: Sequence[Settlement], settled: set[int], now: int) -> None:
    """Keep what was captured of the runs that were settled, in the same transaction."""
    session.each(
        "note_logs",
        [
            {"job_id": s.job_id, "now": now, "worker_id": s.worker_id, "fence": s.fence, "text": s.log}
            for s in settlements
            if s.log is not None and s.job_id in settled
        ],
    )
