"""Rows of new jobs on SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mainspring.model.job import NewJob
from mainspring.store.codes import GATED
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.limits import line_ids
from mainspring.store.sqlite.rows import micros, span

Numbered = Sequence[tuple[int, NewJob]]


def insert(session: Session, jobs: Numbered, now: int) -> None:
    """Write the rows."""
    lanes = {(job.queue, job.priority) for _, job in jobs}
    session.each("add_lanes", ({"queue": queue, "priority": priority} for queue, priority in lanes))
    plain = [each for each in jobs if not each[1].gates] if any(job.gates for _, job in jobs) else jobs
    session.each("insert_jobs", _records(plain, now))
    if len(plain) < len(jobs):
        _insert_limited(session, [each for each in jobs if each[1].gates], now)
    session.hint()


def due(job: NewJob, now: int) -> int:
    """When a job may run."""
    run_at = micros(job.run_at)
    return now + span(job.delay) if run_at is None else run_at


def _records(jobs: Numbered, now: int) -> Iterator[tuple[object, ...]]:
    for job_id, job in jobs:
        run_at = due(job, now)
        # Most have none: nothing is called for them.
        late = None if job.expires is None and job.expires_at is None else _deadline(job, run_at)
        yield job_id, job.queue, job.task, job.priority, run_at, now, job.max_attempts, job.payload, late


def _deadline(job: NewJob, run_at: int) -> int | None:
    if job.expires_at is None and job.expires is not None:
        return run_at + span(job.expires)
    return micros(job.expires_at)


def _insert_limited(session: Session, jobs: Numbered, now: int) -> None:
    lines = line_ids(session, (job.gates for _, job in jobs))
    numbers = [lines[job.gates] for _, job in jobs]
    rows = zip(_records(jobs, now), numbers, strict=True)
    session.each(
        "insert_limited_jobs",
        ((*row[:4], micros(GATED), *row[5:], number, row[4]) for row, number in rows),
    )
