"""What is written when a run ends."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from mainspring.model.failure import Failure
from mainspring.model.value import Value


class Verdict(StrEnum):
    """How a run is recorded in history."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It raised; the job will be tried again."""
    DEAD = "dead"
    """It raised for the last time; the job is a dead letter."""
    RELEASED = "released"
    """Given back at shutdown; no attempt used."""
    CRASHED = "crashed"
    """Its worker died or lost its lease; no attempt used, counted apart."""
    CANCELLED = "cancelled"
    """Taken away by an operator."""


class Settlement(Value, frozen=True, kw_only=True):
    """One fenced write: it applies only while (worker_id, fence) still names the job's claim."""

    job_id: int
    worker_id: int
    fence: int
    verdict: Verdict
    took: timedelta = timedelta()
    delay: timedelta = timedelta()
    """How long the job waits before its next run (FAILED, RELEASED)."""
    failure: Failure | None = None
    result: bytes | None = None
    ran: bool = True
    """False for a claim whose handler never began: nothing goes into history."""
    log: str | None = None
    """What was captured of its log; None when there is nothing to keep."""
