"""Runs: how a handler ended, what is written then, and what history keeps of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.job import Failure, JobState
from mainspring.model.value import Value
from mainspring.model.workflow import NewWorkflow

FOREVER = timedelta(days=3_000_000)
"""A delay without an end: the job waits until something happens. The store writes it as its end of time."""
RESULT_GONE = b""
"""Stands where a result was that is no longer kept. No JSON is empty, and no result at all is None."""


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
    """Cancelled by an operator."""
    SNOOZED = "snoozed"
    """The handler asked to be called again later; no attempt used."""
    DISCARDED = "discarded"
    """The handler said that the job is of no use any more."""
    STARTED = "started"
    """Its workflow began; the job ends with it."""
    EDITED = "edited"
    """No run: an operator changed the arguments of the dead letter."""


class Reason(StrEnum):
    """Why a job died."""

    FAILED = "failed"
    """It raised on its last attempt."""
    PERMANENT = "permanent"
    """It raised an error that another attempt cannot change."""
    EXPIRED = "expired"
    """It had not succeeded by its deadline."""
    CRASHED = "crashed"
    """Its process died too often."""


class Run(Value, frozen=True, kw_only=True):
    """One attempt at a job, or the record that one never came to be (`started_at` is None)."""

    job_id: int
    task: str
    queue: str
    attempt: int
    verdict: Verdict
    worker_id: int | None
    fence: int
    started_at: datetime | None
    finished_at: datetime
    failure: Failure | None = None
    result: bytes | None = None
    payload: bytes | None = None
    """Of an edit, the arguments as they were before."""
    enqueued_at: datetime | None = None
    """When its job was put into the queue."""


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


class Succeeded(Value, frozen=True, kw_only=True):
    """The handler returned; `result` is its JSON, or None for nothing."""

    result: bytes | None = None


class Settled(Value, frozen=True, kw_only=True):
    """The handler succeeded, and its own transaction has written so: nothing is left to write."""

    result: bytes | None = None


class Failed(Value, frozen=True, kw_only=True):
    """The handler raised, timed out, or returned what cannot be kept."""

    failure: Failure
    permanent: bool = False
    """Its exception says that another attempt cannot succeed."""
    retry_after: timedelta | None = None
    """Its exception says that an earlier attempt cannot succeed."""
    rule: int | None = None
    """The place, among the rules of its task's retry policy, of the one that speaks of this exception."""
    error: BaseException | None = None
    """The exception, if this process has it: only for the log."""


class Stopped(Value, frozen=True, kw_only=True):
    """The worker ended the run at shutdown: it costs no attempt. `started` is false for a
    claim whose handler never began."""

    started: bool = True


class Snoozed(Value, frozen=True, kw_only=True):
    """The handler asked to be called again later: it costs no attempt."""

    delay: timedelta
    awaits: str | None = None
    """The event that it waits for, at most for the delay."""


class Discarded(Value, frozen=True, kw_only=True):
    """The handler said that the job is of no use any more; `failure` has the reason."""

    failure: Failure


class Crashed(Value, frozen=True, kw_only=True):
    """The process that ran the handler died: it costs no attempt, and is counted as a crash."""

    failure: Failure


class Expired(Value, frozen=True, kw_only=True):
    """The job's deadline passed: while the handler ran, or, without `started`, before it could begin."""

    failure: Failure
    started: bool = True


class Started(Value, frozen=True, kw_only=True):
    """The job is a workflow, which begins: the job ends with it."""

    workflow: NewWorkflow


Outcome = Succeeded | Settled | Failed | Stopped | Snoozed | Discarded | Crashed | Expired | Started


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


class JobEnd(Value, frozen=True, kw_only=True):
    """How a job ended, for callers that wait for it."""

    state: JobState
    result: bytes | None = None
    failure: Failure | None = None
    """The last error of a dead one."""
    reason: str | None = None
    """Why it is dead."""
