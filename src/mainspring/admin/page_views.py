"""The JSON shapes of pages: rows, and where the next page begins."""

from __future__ import annotations

from mainspring.admin.views import View, iso, job_view, schedule_view, slot_view
from mainspring.model.job import JobPage
from mainspring.model.schedule import ScheduleCounts, SchedulePage


def job_page_view(page: JobPage) -> View:
    """`next` is what to give as `before`."""
    return {"jobs": [job_view(each) for each in page.jobs], "next": page.next, "partial": page.partial}


def schedule_page_view(page: SchedulePage) -> View:
    """`next` is what to give as `after`."""
    rows = [
        {**schedule_view(row.schedule), "last": None if row.last is None else slot_view(row.last)}
        for row in page.rows
    ]
    return {"schedules": rows, "next": page.next, "partial": page.partial}


def schedule_counts_view(counts: ScheduleCounts) -> View:
    """How many there are."""
    return {
        "total": counts.total,
        "paused": counts.paused,
        "edited": counts.edited,
        "overdue": counts.overdue,
        "ended": counts.ended,
        "oldest_due_at": iso(counts.oldest_due_at),
        "more": counts.more,
    }
