"""Rows of new jobs on SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mainspring.model.job import NewJob
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.rows import micros, span

Numbered = Sequence[tuple[int, NewJob]]


def insert(session: Session, jobs: Numbered, now: int) -> None:
    """Write the rows."""
    lanes = {(job.queue, job.priority) for _, job in jobs}
    session.each("add_lanes", ({"queue": queue, "priority": priority} for queue, priority in lanes))
    session.each("insert_jobs", _records(jobs, now))
    session.hint()


def due(job: NewJob, now: int) -> int:
    """When a job may run."""
    run_at = micros(job.run_at)
    return now + span(job.delay) if run_at is None else run_at


def _records(jobs: Numbered, now: int) -> Iterator[tuple[object, ...]]:
    for job_id, job in jobs:
        yield job_id, job.queue, job.task, job.priority, due(job, now), now, job.max_attempts, job.payload
