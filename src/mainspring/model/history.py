"""The read side: runs, dead letters, counts and pages."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.failure import Failure
from mainspring.model.job import LIVE_STATES, Job, JobState
from mainspring.model.settlement import Verdict
from mainspring.model.value import Value


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


class DeadJob(Value, frozen=True, kw_only=True):
    """A dead letter: the job, why it died, and every error it reported."""

    id: int
    task: str
    queue: str
    priority: int
    payload: bytes
    run_at: datetime
    enqueued_at: datetime
    died_at: datetime
    max_attempts: int
    failures: int
    crashes: int
    fence: int
    schedule_id: int | None
    slot_at: datetime | None
    reason: str
    errors: tuple[Failure, ...]
    expires_at: datetime | None = None
    workflow_id: int | None = None
    """The workflow whose step it is, or that it is itself: it goes on with that, by a retry."""

    def as_job(self) -> Job:
        """The same, seen as a job among others."""
        return Job(
            id=self.id,
            task=self.task,
            queue=self.queue,
            priority=self.priority,
            state=JobState.DEAD,
            workflow_id=self.workflow_id,
            run_at=self.run_at,
            enqueued_at=self.enqueued_at,
            payload=self.payload,
            max_attempts=self.max_attempts,
            failures=self.failures,
            crashes=self.crashes,
            fence=self.fence,
            schedule_id=self.schedule_id,
            slot_at=self.slot_at,
            finished_at=self.died_at,
            expires_at=self.expires_at,
            errors=self.errors,
        )


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
    """What this member had in hand when it last said that it lives."""
    since: datetime | None = None
    """Live ones by when they were put into the queue, others by when they ended."""
    until: datetime | None = None
    before: int | None = None
    limit: int = 50

    @property
    def wanted(self) -> tuple[JobState, ...]:
        """The states to look for."""
        return self.states or (LIVE_STATES if self.state is None else (self.state,))


class DeadFilter(Value, frozen=True, kw_only=True):
    """Which dead letters; an empty filter means all of them."""

    ids: tuple[int, ...] | None = None
    task: str | None = None
    queue: str | None = None
    reason: str | None = None
    error: str | None = None
    """The type of its last error, with or without its module."""
    text: str | None = None
    """What the message of its last error holds, letter for letter."""
    died_from: datetime | None = None
    died_before: datetime | None = None
    before: int | None = None
    limit: int = 50


class DeadGroup(Value, frozen=True, kw_only=True):
    """Dead letters of one task whose last errors are alike."""

    task: str
    error: str
    """The type of their last error; empty when they have none."""
    line: str
    """The first line of its message."""
    count: int
    newest_at: datetime
    newest_id: int


class QueueDepth(Value, frozen=True, kw_only=True):
    """What stands in one queue for one task."""

    queue: str
    task: str
    ready: int
    delayed: int
    running: int
    oldest_ready_at: datetime | None
    about: bool = False
    """There are too many to be counted: ready and delayed are estimates."""
