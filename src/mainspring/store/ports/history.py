"""The read side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.model.history import DeadFilter, DeadGroup, DeadJob, JobFilter, Standing
from mainspring.model.job import Job, JobState
from mainspring.store.ports.stamp import Stamp


class HistoryStore(Protocol):
    """The read side."""

    async def job(self, job_id: int, *, at: Stamp) -> Job | None:
        """One job, wherever it stands: live, dead or finished."""

    async def jobs(self, which: JobFilter, *, at: Stamp) -> list[Job]:
        """As PageStore.jobs_page, but all that were asked for, however long it takes to find them."""

    async def states(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, JobState]:
        """Where each of these jobs stands; one that nobody knows any more is left out."""

    async def standings(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, Standing]:
        """Those of these jobs that are live."""

    async def dead(self, which: DeadFilter) -> list[DeadJob]:
        """Dead letters, newest id first."""

    async def count_dead(self, which: DeadFilter) -> int:
        """How many dead letters there are, counted up to the filter's limit."""

    async def dead_groups(self, which: DeadFilter) -> list[DeadGroup]:
        """Dead letters by task and last error, the largest group first."""
