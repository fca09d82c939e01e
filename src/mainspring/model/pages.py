"""Pages of long lists. How much is looked at is bounded, so a page may have fewer rows than asked for and
still name a next one."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.job import Job
from mainspring.model.schedule import Schedule, Slot
from mainspring.model.value import Value


class JobPage(Value, frozen=True, kw_only=True):
    """Jobs, newest id first."""

    jobs: tuple[Job, ...]
    next: int | None = None
    """What to give as `before` for the page after this one; None when there is none."""
    partial: bool = False
    """So many rows were looked at that the page was given up before it was full."""


class Only(StrEnum):
    """Which schedules to list."""

    PAUSED = "paused"
    EDITED = "edited"
    """Changed by somebody since code declared them."""
    OVERDUE = "overdue"
    """A slot of theirs has passed that nobody has dealt with."""
    ENDED = "ended"
    """They have no slot left."""


class ScheduleFilter(Value, frozen=True, kw_only=True):
    """Which schedules to list, by name; `after` is where the page before says to go on."""

    text: str | None = None
    """What the name of the schedule or of its task holds, in whatever case."""
    task: str | None = None
    queue: str | None = None
    only: Only | None = None
    late: timedelta = timedelta(seconds=5)
    """How late a slot is overdue."""
    after: str | None = None
    limit: int = 50


class ScheduleRow(Value, frozen=True, kw_only=True):
    """A schedule and the newest slot that is on its record."""

    schedule: Schedule
    last: Slot | None = None


class SchedulePage(Value, frozen=True, kw_only=True):
    """Schedules by name."""

    rows: tuple[ScheduleRow, ...]
    next: str | None = None
    partial: bool = False


class ScheduleCounts(Value, frozen=True, kw_only=True):
    """How many schedules there are, of the first so many by name."""

    total: int
    paused: int
    edited: int
    overdue: int
    ended: int
    oldest_due_at: datetime | None
    """The earliest slot that is due and not dealt with."""
    more: bool = False
    """There are more schedules than were looked at."""
