"""What runs say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from mainspring.model.report import Ending, Progress, ProgressNote, RunLog
from mainspring.store.ports.stamp import Stamp


class ReportStore(Protocol):
    """What runs say of themselves. Jobs that say nothing touch none of it."""

    async def note_progress(self, notes: Sequence[ProgressNote], *, at: Stamp) -> None:
        """Write how far runs are, in one statement, each under a claim that still stands; others are
        left out. One note a job. May be lost in a database crash: the next one says more."""

    async def progress(self, job_id: int) -> Progress | None:
        """How far a running job's run said it was; None for a job that is not running or said nothing."""

    async def sweep_progress(self, *, at: Stamp) -> int:
        """Forget what runs said that have ended; answer how many."""

    async def run_logs(self, job_id: int) -> list[RunLog]:
        """What was captured of one job's runs, oldest first; runs that logged nothing have none."""

    async def drop_results(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop the results of the whole UTC days that ended `keep` ago or earlier; their runs stay, with
        RESULT_GONE in its place. Answers how many there were."""

    async def endings(self, job_ids: Sequence[int]) -> dict[int, Ending]:
        """How those of these jobs ended that have."""
