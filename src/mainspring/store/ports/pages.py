"""Pages of long lists: every call looks at a bounded number of rows, however many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from mainspring.model.history import JobFilter
from mainspring.model.pages import HerdSize, JobPage, ScheduleCounts, ScheduleFilter, SchedulePage
from mainspring.store.ports.stamp import Stamp


class PageStore(Protocol):
    """Lists for people to leaf through."""

    async def jobs_page(self, which: JobFilter, *, at: Stamp) -> JobPage:
        """Jobs, newest id first, of whatever states the filter names."""

    async def schedules_page(self, which: ScheduleFilter, *, at: Stamp) -> SchedulePage:
        """Schedules by name, each with its newest slot."""

    async def schedule_counts(self, *, late: timedelta, at: Stamp) -> ScheduleCounts:
        """How many there are; overdue are those whose slot is `late` or later."""

    async def herd_sizes(self) -> list[HerdSize]:
        """Schedules that fire, and without end: grouped by what decides when their jobs are due."""
