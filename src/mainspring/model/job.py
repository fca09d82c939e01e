"""Jobs: what is put into a queue, what is read back, and what a worker holds."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.failure import Failure
from mainspring.model.limit import Gate
from mainspring.model.unique import Key
from mainspring.model.value import Value

DEFAULT_QUEUE = "default"
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100


class JobState(StrEnum):
    """Where a job stands. The first three live in the queue; the others are final."""

    DELAYED = "delayed"
    READY = "ready"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"


LIVE_STATES = (JobState.DELAYED, JobState.READY, JobState.RUNNING)


class NewJob(Value, frozen=True, kw_only=True):
    """A job to be put into the queue. `run_at` is an instant; `delay` counts from the store's now."""

    task: str
    payload: bytes
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: datetime | None = None
    delay: timedelta = timedelta()
    max_attempts: int = 1
    unique: Key | None = None
    gates: tuple[Gate, ...] = ()
    """Limits it must pass before it can be claimed."""
    expires: timedelta | None = None
    """How long after it is first due it must have succeeded; or, as an instant, `expires_at`."""
    expires_at: datetime | None = None
    trace: str | None = None
    """The trace it goes on with: a W3C traceparent, and after a space a tracestate if there is one."""


class Job(Value, frozen=True, kw_only=True):
    """A job as it is on record, wherever it now stands."""

    id: int
    task: str
    queue: str
    priority: int
    state: JobState
    run_at: datetime
    enqueued_at: datetime
    payload: bytes
    max_attempts: int
    failures: int = 0
    crashes: int = 0
    fence: int = 0
    worker_id: int | None = None
    schedule_id: int | None = None
    slot_at: datetime | None = None
    workflow_id: int | None = None
    """The workflow whose step it is, while it is live or dead."""
    waits_for_limit: bool = False
    """It is before its gates; `run_at` is when it came there, or is to come."""
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    result: bytes | None = None
    errors: tuple[Failure, ...] = ()
    trace: str | None = None
    """The trace it goes on with, while it is live or dead."""


class JobEdit(Value, frozen=True, kw_only=True):
    """What becomes of a job that waits. What is None stays as it is."""

    payload: bytes | None = None
    priority: int | None = None
    queue: str | None = None
    max_attempts: int | None = None
    gates: tuple[Gate, ...] | None = None
    """The limits that it must pass then."""
    expires: timedelta | None = None
    """How long after it is due it must have succeeded; or, as an instant, `expires_at`."""
    expires_at: datetime | None = None
    no_deadline: bool = False


class Claim(Value, frozen=True, kw_only=True, gc=False):
    """A job handed to one worker. (worker_id, fence) names this claim and no other, for ever.

    The worker's id is random per start, so a fence number that is granted twice, because a
    failover or an unsynced commit lost the first grant, still never matches.
    """

    job_id: int
    worker_id: int
    fence: int
    task: str
    queue: str
    payload: bytes
    failures: int
    max_attempts: int
    run_at: datetime
    enqueued_at: datetime
    schedule_id: int | None = None
    slot_at: datetime | None = None
    limited: bool = False
    """Whether it passed gates, whose next in line may pass once it has ended."""
    crashes: int = 0
    """How many processes died under a run of it that had begun."""
    suspect: bool = False
    """Whether it was in hand when a process died, and may be the reason: it runs in a child, and that it
    begins is put on record."""
    workflow_id: int | None = None
    """The workflow whose step it is."""
    expires_in: timedelta | None = None
    """How long before its deadline it was claimed, by the store's clock; None for one that has none."""
    trace: str | None = None
    """The trace it goes on with."""
    waited: timedelta | None = None
    """How long it had been due when it was claimed, by the store's clock."""
    previous_at: datetime | None = None
    """The slot before its own; None where that has to be looked up."""
    database_id: str = ""
    """The identity of the database it was claimed from: job numbers and slots repeat in others."""

    @property
    def attempt(self) -> int:
        """Counted from 1. Lost claims and crashes do not count: only reported failures do."""
        return self.failures + 1


class JobName(Value, frozen=True, kw_only=True):
    """What is said of a job in a line about it."""

    job_id: int
    task: str
    queue: str


class Whereabouts(Value, frozen=True, kw_only=True):
    """Where a job is: a worker has it, or it waits; or, without `live`, it has ended, or was cancelled."""

    job_id: int
    live: bool
    holder: str | None = None
    """The name of the worker that has it."""


class Cancelled(Value, frozen=True, kw_only=True):
    """What a cancel did to one job: the state it was taken out of, or None when it was not live."""

    job_id: int
    was: JobState | None
