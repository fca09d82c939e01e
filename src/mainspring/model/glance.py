"""A few jobs and schedules of each kind, without what is large, for a screen that is looked at all day."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.settlement import Verdict
from mainspring.model.value import Value


class RunningJob(Value, frozen=True, kw_only=True):
    """A job in a worker's hands."""

    id: int
    task: str
    queue: str
    attempt: int
    max_attempts: int
    worker_id: int
    claimed_at: datetime
    fraction: float | None = None
    """How far its run said it is; None when it said nothing."""
    note: str = ""


class ComingFire(Value, frozen=True, kw_only=True):
    """The next slot of one schedule."""

    schedule: str
    task: str
    queue: str
    slot_at: datetime
    paused: bool = False
    """It will be skipped, unless somebody resumes the schedule before."""


class FailedRun(Value, frozen=True, kw_only=True):
    """A run that failed, crashed or ended its job as a dead letter."""

    job_id: int
    fence: int
    task: str
    queue: str
    attempt: int
    verdict: Verdict
    finished_at: datetime
    error: str = ""
    """The type of what it raised."""
    message: str = ""
    """The beginning of its message."""
