"""Pages of long lists: every call looks at a bounded number of rows, however many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from mainspring.model.history import JobFilter
from mainspring.model.pages import JobPage, ScheduleCounts, ScheduleFilter, SchedulePage
from mainspring.store.ports.stamp import Stamp


class PageStore(Protocol):
    """Lists for people to leaf through."""

    async def jobs_page(self, which: JobFilter, *, at: Stamp) -> JobPage:
        """Jobs, newest id first, of whatever states the filter names."""

    async def schedules_page(self, which: ScheduleFilter, *, at: Stamp) -> SchedulePage:
        """Schedules by name, each with its newest slot."""

    async def schedule_counts(self, *, late: timedelta, at: Stamp) -> ScheduleCounts:
        """How many there are; overdue are those whose slot is `late` or later."""

    async def name_of_schedule(self, schedule_id: int) -> str | None:
        """What a schedule is called, or was before it was deleted."""
