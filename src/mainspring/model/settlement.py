"""What is written when a run ends."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from mainspring.model.failure import Failure
from mainspring.model.value import Value
from mainspring.model.workflow import NewWorkflow

FOREVER = timedelta(days=3_000_000)
"""A delay without an end: the job waits until something happens. The store writes it as its end of time."""


class Verdict(StrEnum):
    """How a run is recorded in history."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """It raised; the job will be tried again."""
    DEAD = "dead"
    """It ended the job, or the job ended without it: a dead letter, whose reason says why."""
    RELEASED = "released"
    """Given back at shutdown; no attempt used."""
    CRASHED = "crashed"
    """Its process died or lost its lease; no attempt used, counted apart."""
    CANCELLED = "cancelled"
    """Taken away by an operator."""
    SNOOZED = "snoozed"
    """The handler asked to be called again later; no attempt used."""
    DISCARDED = "discarded"
    """The handler said that the job is of no use any more."""
    STARTED = "started"
    """Its workflow began, with which it ends."""
    EDITED = "edited"
    """No run: somebody changed the arguments of the dead letter."""


class Reason(StrEnum):
    """Why a job died."""

    FAILED = "failed"
    """It raised on its last attempt."""
    PERMANENT = "permanent"
    """It raised what cannot be helped by trying again."""
    EXPIRED = "expired"
    """It had not succeeded by its deadline."""
    CRASHED = "crashed"
    """Its process died under it too often."""


class Settlement(Value, frozen=True, kw_only=True, gc=False):
    """One fenced write: it applies only while (worker_id, fence) still names the job's claim."""

    job_id: int
    worker_id: int
    fence: int
    verdict: Verdict
    took: timedelta = timedelta()
    delay: timedelta = timedelta()
    """How long the job waits before its next run (FAILED, CRASHED, SNOOZED, RELEASED)."""
    awaits: str | None = None
    """The event that ends the wait before its time (SNOOZED)."""
    failure: Failure | None = None
    result: bytes | None = None
    ran: bool = True
    """False for a claim whose handler never began: RELEASED leaves nothing in history, DEAD a run that
    never started."""
    reason: Reason | None = None
    """Why the job dies of it (DEAD, CRASHED); a CRASHED one without a reason goes back to the queue."""
    start: NewWorkflow | None = None
    """The workflow that begins with it (STARTED)."""
    log: str | None = None
    """What was captured of its log; None when there is nothing to keep."""
    trace: str | None = None
    """The trace that the steps of its workflow go on with (STARTED)."""
