"""What a run says of itself while it runs, what is kept of it, and how its job ended."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.failure import Failure
from mainspring.model.job import JobState
from mainspring.model.value import Value

RESULT_GONE = b""
"""Stands where a result was that is no longer kept. No JSON is empty, and no result at all is None."""


class ProgressNote(Value, frozen=True, kw_only=True):
    """How far one claim's run is, to be written; it counts only while the claim is the job's."""

    job_id: int
    worker_id: int
    fence: int
    fraction: float
    note: str = ""


class Progress(Value, frozen=True, kw_only=True):
    """How far a running job said it was, and when that was written."""

    fraction: float
    note: str
    at: datetime


class RunLog(Value, frozen=True, kw_only=True):
    """The lines captured of one run, which (worker_id, fence) names."""

    worker_id: int
    fence: int
    finished_at: datetime
    text: str


class Ending(Value, frozen=True, kw_only=True):
    """How a job ended, for those who wait for it."""

    state: JobState
    result: bytes | None = None
    failure: Failure | None = None
    """The last error of a dead one."""
    reason: str | None = None
    """Why it is dead."""
