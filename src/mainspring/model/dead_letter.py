"""Dead letters: jobs that are not retried any more."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.job import Failure, Job, JobState
from mainspring.model.value import Value


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
    trace: str | None = None
    """The trace it goes on with when it is replayed."""

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
            trace=self.trace,
        )


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
