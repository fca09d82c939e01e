"""Runs: their history, their progress and their logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from mainspring.model.run import FailedRun, JobEnd, Progress, ProgressNote, Run, RunLog
from mainspring.store.codes import FINAL_STATE, VERDICT
from mainspring.store.database import Database, Row, Stamp, reads
from mainspring.store.rows import moment, reader

BATCH = 5000
"""The number of rows that one transaction changes, at most, so that it holds its locks for milliseconds
only."""
SETTLED = timedelta(minutes=1)
"""The age of a progress report after which the store checks whether its run has ended."""


def _verdict(row: Row) -> object:
    return VERDICT[row["verdict"]]


_run = reader(Run, verdict=_verdict)
_failed = reader(FailedRun, verdict=_verdict)
_progress = reader(Progress)
_log = reader(RunLog)
_ending = reader(JobEnd, state=lambda row: FINAL_STATE[row["verdict"]])


class Runs:
    """Runs. A job that reports no progress and logs nothing writes no row of progress or logs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @reads
    async def of(self, job_id: int) -> list[Run]:
        """Every run of one job, oldest first."""
        return [_run(row) for row in await self._database.fetch("runs", job_id=job_id)]

    @reads
    async def of_many(self, job_ids: Sequence[int], *, most: int) -> dict[int, list[Run]]:
        """The newest runs of many jobs, at most `most` of each, oldest first. Arguments and results are left
        out, because they may be large."""
        found: dict[int, list[Run]] = {}
        for row in await self._database.fetch("runs_of", ids=sorted(job_ids), most=most):
            found.setdefault(row["job_id"], []).append(_run(row))
        return found

    @reads
    async def failed(self, *, among: int, limit: int) -> list[FailedRun]:
        """Failed runs among the `among` runs of the newest jobs, latest first. It reads a bounded number of
        rows."""
        found = await self._database.fetch("lately_failed", among=among, limit=limit)
        return [_failed(row) for row in found]

    @reads
    async def endings(self, job_ids: Sequence[int]) -> dict[int, JobEnd]:
        """How these jobs ended, for those that have ended."""
        # If a job ended more than once, the last row counts.
        found = await self._database.fetch("endings", ids=sorted(job_ids))
        return {row["id"]: _ending(row) for row in found}

    @reads
    async def logs(self, job_id: int) -> list[RunLog]:
        """The captured logs of the runs of one job, oldest first. A run that logged nothing has no row."""
        return [_log(row) for row in await self._database.fetch("run_logs", job_id=job_id)]

    async def note_progress(self, notes: Sequence[ProgressNote], *, at: Stamp) -> None:
        """Write the progress of runs, in one statement. A run whose claim is no longer the job's is left out.
        Each job has one note. The note may be lost in a crash of the database: the next note replaces it."""
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

    @reads
    async def progress(self, job_id: int) -> Progress | None:
        """The last reported progress of a running job; None for a job that does not run or has not reported
        progress."""
        found = await self._database.fetch("progress", job_id=job_id)
        return _progress(found[0]) if found else None

    async def sweep_progress(self, *, at: Stamp) -> int:
        """Delete the progress of runs that have ended; answer how many rows. The sweep may be lost in a crash
        of the database: the next sweep finds the rows again."""
        before, gone = await self._now(at) - SETTLED, 0
        while rows := await self._database.relaxed("sweep_progress", before=before, limit=BATCH):
            gone += len(rows)
        return gone

    async def drop_results(self, *, keep: timedelta, at: Stamp) -> int:
        """Delete the results of the whole UTC days that ended `keep` ago or earlier. The runs stay, with
        RESULT_GONE as their result. The answer is the number of deleted results."""
        before, gone = day_before(await self._now(at), keep), 0
        while rows := await self._database.fetch("drop_results", before=before, limit=BATCH):
            gone += len(rows)
        return gone

    async def _now(self, at: Stamp) -> datetime:
        [row] = await self._database.relaxed("now", at=at)
        return moment(row["now"])


def day_before(now: datetime, keep: timedelta) -> datetime:
    """The start of the UTC day that contains the moment `keep` ago: earlier days are not kept."""
    return (now - keep).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
