"""Jobs: what callers put into a queue, what the store returns, and what a worker claims."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from mainspring.model.limit import LimitKey
from mainspring.model.value import Value

DEFAULT_QUEUE = "default"
LOWEST_PRIORITY, HIGHEST_PRIORITY = -100, 100
LONGEST_TRACE_STATE = 512
_TRACE_PARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE_STATE = re.compile(r"[\x21-\x7e][\x20-\x7e]*")


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
    limit_keys: tuple[LimitKey, ...] = ()
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
    """It is before its limit keys; `run_at` is when it came there, or is to come."""
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
    limit_keys: tuple[LimitKey, ...] | None = None
    """The limits that it must pass then."""
    expires: timedelta | None = None
    """How long after it is due it must have succeeded; or, as an instant, `expires_at`."""
    expires_at: datetime | None = None
    no_deadline: bool = False


class Claim(Value, frozen=True, kw_only=True, gc=False):
    """A job that one worker may run. (worker_id, fence) names this claim and no other, for ever.

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
    """Whether it passed limit keys, whose next in line may pass once it has ended."""
    crashes: int = 0
    """How many processes died during a run of it."""
    orphan: bool = False
    """Whether it was running when a process died, and may be the cause: it runs in a child process, and its
    start is recorded."""
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


class Failure(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What a handler raised. `attempt` and `at` are set by the store when it is written."""

    type: str
    message: str
    traceback: str = ""
    attempt: int = 0
    at: datetime | None = None


def tried_since(errors: Sequence[Failure]) -> datetime | None:
    """When the first of these attempts failed, counted from the last replay; None where none did."""
    first = None
    for error in reversed(errors):
        if first is not None and error.attempt > first.attempt:
            break  # attempts count from one again: those before it ended with another death
        first = error
    return None if first is None else first.at


ScopeOption = Literal["queued", "finished", "period"]
OnDuplicateOption = Literal["return", "replace", "error"]
"""The same words as the members of the two classes below, in the form that type checkers need."""


class Scope(StrEnum):
    """How long a key refuses other jobs."""

    QUEUED = "queued"
    """While its job waits. When its job runs, a second job is made."""
    FINISHED = "finished"
    """Until its job has ended, however."""
    PERIOD = "period"
    """For a length of time from when its job was made, whatever became of the job."""


class OnDuplicate(StrEnum):
    """What happens to a job whose key is taken."""

    RETURN = "return"
    """The existing job is returned."""
    REPLACE = "replace"
    """The existing job gets its arguments, its time and its priority; if that job runs already, the call
    fails."""
    ERROR = "error"
    """It is refused."""


class Key(Value, frozen=True, kw_only=True):
    """The key of one job."""

    digest: bytes
    """SHA-256 of the task and what was named or derived: what is compared."""
    name: str
    """For people: the key as it was named, or the digest."""
    scope: Scope = Scope.FINISHED
    period: timedelta | None = None
    on_duplicate: OnDuplicate = OnDuplicate.RETURN


class Inserted(Value, frozen=True, kw_only=True):
    """What happened to one job that was to be inserted."""

    job_id: int
    """Its own id, or that of the existing job."""
    created: bool = True
    replaced: bool = False


class RequestKey(Value, frozen=True, kw_only=True):
    """The name that a caller gives to one request. Two callers may use the same key."""

    caller: str
    key: str
    digest: bytes
    """SHA-256 of what is asked for: the same key for something else is a mistake."""


class Answered(Value, frozen=True, kw_only=True):
    """What happened to the jobs of a request."""

    jobs: tuple[Inserted, ...]
    again: bool = False
    """It had been answered before; nothing was written."""


class JobName(Value, frozen=True, kw_only=True):
    """A job as a line of the log names it."""

    job_id: int
    task: str
    queue: str


class Standing(Value, frozen=True, kw_only=True):
    """Where a live job stands, without what it was given."""

    id: int
    state: JobState
    run_at: datetime
    enqueued_at: datetime
    failures: int
    max_attempts: int
    worker_id: int | None = None
    claimed_at: datetime | None = None
    """When the run that is under way began."""


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


class Whereabouts(Value, frozen=True, kw_only=True):
    """Where a job is: a worker has it, or it waits; or, without `live`, it has ended, or was cancelled."""

    job_id: int
    live: bool
    holder: str | None = None
    """The name of the worker that has it."""


class CancelledJob(Value, frozen=True, kw_only=True):
    """What a cancel did to one job: the state it had, or None if it was not live."""

    job_id: int
    was: JobState | None


class JobFilter(Value, frozen=True, kw_only=True):
    """Which jobs to list, newest first; `before` is where the page above says to go on."""

    state: JobState | None = None
    states: tuple[JobState, ...] = ()
    """More than one; none at all means the live ones."""
    task: str | None = None
    queue: str | None = None
    key: str | None = None
    """The name of its key, for as long as that is kept."""
    schedule: str | None = None
    worker: int | None = None
    """The jobs that this process ran at its last heartbeat."""
    since: datetime | None = None
    """Live ones by when they were put into the queue, others by when they ended."""
    until: datetime | None = None
    before: int | None = None
    limit: int = 50

    @property
    def wanted(self) -> tuple[JobState, ...]:
        """The states to look for."""
        return self.states or (LIVE_STATES if self.state is None else (self.state,))


class JobPage(Value, frozen=True, kw_only=True):
    """Jobs, newest id first. The number of rows that are looked at is bounded, so a page may have fewer jobs
    than asked for and still name a next one."""

    jobs: tuple[Job, ...]
    next: int | None = None
    """What to give as `before` for the page after this one; None when there is none."""
    partial: bool = False
    """So many rows were looked at that the page was given up before it was full."""


def written_trace(parent: str | None, state: str | None = None) -> str | None:
    """One text of both headers; None for a parent that is none. A state that is too long or not plain text
    is left out, as the standard allows."""
    if parent is None or not _TRACE_PARENT.fullmatch(parent):
        return None
    if not state or len(state) > LONGEST_TRACE_STATE or not _TRACE_STATE.fullmatch(state):
        return parent
    return f"{parent} {state}"


def read_trace(trace: str) -> dict[str, str]:
    """The headers again, by their names."""
    parent, _, state = trace.partition(" ")
    return {"traceparent": parent, "tracestate": state} if state else {"traceparent": parent}


def trace_id(trace: str | None) -> str | None:
    """The 32 hex digits that all spans of the trace share."""
    return None if trace is None else trace[3:35]
