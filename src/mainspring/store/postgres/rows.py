"""Rows of PostgreSQL into model values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mainspring.model.failure import Failure
from mainspring.model.history import DeadGroup, DeadJob, Standing
from mainspring.model.job import Claim, Job, JobState
from mainspring.store.codes import FINAL_STATE, GATED
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

_failure = msgspec.json.Decoder(Failure)
_failures = msgspec.json.Decoder(tuple[Failure, ...])


def written(failure: Failure | None) -> str:
    """A failure as jsonb takes it."""
    return msgspec.json.encode(failure).decode()


def errors(text: str | None) -> tuple[Failure, ...]:
    """The errors kept with a job."""
    return () if text is None else _failures.decode(text)


def failure(text: str | None) -> Failure | None:
    """One of them."""
    return None if text is None else _failure.decode(text)


def to_claim(row: Record, worker_id: int, names: Names, database_id: str) -> Claim:
    """A claimed row; its queue and task must have been learnt."""
    # By position, as both statements name their columns: a claim is the one row made for every job, and to
    # ask for fifteen names takes longer than all the rest.
    (
        job_id,
        fence,
        queue_id,
        task_id,
        _priority,
        payload,
        failures,
        max_attempts,
        run_at,
        enqueued_at,
        schedule_id,
        slot_at,
        line_id,
        crashes,
        expires_in,
        workflow_id,
        trace,
        waited,
        previous_at,
    ) = row
    return Claim(
        job_id=job_id,
        worker_id=worker_id,
        fence=fence,
        task=names.task(task_id),
        queue=names.queue(queue_id),
        payload=payload,
        failures=failures,
        max_attempts=max_attempts,
        run_at=run_at,
        enqueued_at=enqueued_at,
        schedule_id=schedule_id,
        slot_at=slot_at,
        limited=line_id is not None,
        crashes=crashes,
        expires_in=expires_in,
        workflow_id=workflow_id,
        trace=trace,
        waited=waited,
        previous_at=previous_at,
        database_id=database_id,
    )


def live_job(row: Record, names: Names) -> Job:
    """A row of `jobs`."""
    return Job(
        id=row["id"],
        task=names.task(row["task_id"]),
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        state=JobState(row["state"]),
        run_at=row["due_at"] or row["run_at"],
        enqueued_at=row["enqueued_at"],
        payload=row["payload"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        worker_id=row["worker_id"] or None,
        schedule_id=row["schedule_id"],
        slot_at=row["slot_at"],
        workflow_id=row["workflow_id"],
        trace=row["trace"],
        waits_for_limit=row["run_at"] == GATED,
        expires_at=row["expires_at"],
        errors=errors(row["errors"]),
    )


def ended_job(row: Record, names: Names) -> Job:
    """A job as the run that ended it tells."""
    return Job(
        id=row["job_id"],
        task=names.task(row["task_id"]),
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        state=FINAL_STATE[row["verdict"]],
        run_at=row["run_at"],
        enqueued_at=row["enqueued_at"],
        payload=row["payload"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        worker_id=row["worker_id"] or None,
        schedule_id=row["schedule_id"],
        slot_at=row["slot_at"],
        finished_at=row["finished_at"],
        result=row["result"],
    )


def dead_job(row: Record, names: Names) -> DeadJob:
    """A row of `dead_jobs`."""
    return DeadJob(
        id=row["id"],
        task=names.task(row["task_id"]),
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        payload=row["payload"],
        run_at=row["run_at"],
        enqueued_at=row["enqueued_at"],
        died_at=row["died_at"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        schedule_id=row["schedule_id"],
        slot_at=row["slot_at"],
        reason=row["reason"],
        errors=errors(row["errors"]),
        expires_at=row["expires_at"],
        workflow_id=row["workflow_id"],
        trace=row["trace"],
    )


def standing(row: Record) -> Standing:
    """A row of `jobs`, but for its arguments."""
    return Standing(
        id=row["id"],
        state=JobState(row["state"]),
        run_at=row["run_at"],
        enqueued_at=row["enqueued_at"],
        failures=row["failures"],
        max_attempts=row["max_attempts"],
        worker_id=row["worker_id"] or None,
        claimed_at=row["claimed_at"] if row["worker_id"] else None,
    )


def dead_group(row: Record, names: Names) -> DeadGroup:
    """Dead letters that are alike."""
    return DeadGroup(
        task=names.task(row["task_id"]),
        error=row["error"],
        line=row["line"],
        count=row["letters"],
        newest_at=row["newest_at"],
        newest_id=row["newest_id"],
    )
