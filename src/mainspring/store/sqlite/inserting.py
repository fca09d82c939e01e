"""Inserts of jobs on SQLite, with or without unique keys, inside a transaction that has the write lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mainspring.model.job import Inserted, NewJob
from mainspring.model.workflow import StepRecord
from mainspring.store.codes import LIMITED
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.limits import limit_set_ids
from mainspring.store.sqlite.rows import listed, maybe_moment, micros, moment, span
from mainspring.store.uniqueness import Holder, decide

Numbered = Sequence[tuple[int, NewJob]]
Row = tuple[Any, ...]


def insert(session: Session, jobs: Numbered, now: int) -> None:
    """Write the rows."""
    lanes = {(job.queue, job.priority) for _, job in jobs}
    session.each("add_priority_levels", ({"queue": queue, "priority": priority} for queue, priority in lanes))
    # Most jobs have no limits, deadline or trace, and each further column costs as much as a call.
    bound = [
        (job_id, job)
        for job_id, job in jobs
        if job.limit_keys or job.expires is not None or job.expires_at is not None or job.trace is not None
    ]
    if bound:
        _insert_bound(session, bound, now)
        others = {job_id for job_id, _ in bound}
        jobs = [each for each in jobs if each[0] not in others]
    session.each("insert_jobs", _records(jobs, now))
    session.hint()


def insert_unique(session: Session, jobs: Sequence[NewJob], now: int) -> list[Inserted]:
    """Insert each job, or find the job that has its key."""
    first: int = session.row("reserve_ids")["id"] + 1
    ids = list(range(first, first + len(jobs)))
    holders = _lock_keys(session, jobs, ids)
    found = session.rows("live_holders", ids=listed(each.job_id for each in holders.values()))
    live = {row["id"]: bool(row["running"]) for row in found}
    done = decide(jobs, ids, holders, live, moment(now))
    for place in done.make:
        if (key := jobs[place].unique) is not None:
            until = None if key.period is None else now + span(key.period)
            session.change("take_keys", key=key.digest, job_id=done.answers[place].job_id, until=until)
    insert(session, [(ids[place], jobs[place]) for place in done.make], now)
    for place in done.replace:
        _replace(session, jobs[place], done.answers[place].job_id, now)
    return list(done.answers)


def insert_step_jobs(session: Session, jobs: Sequence[tuple[StepRecord, NewJob]], now: int) -> None:
    """Write the jobs of steps, which have their ids."""
    session.each(
        "add_priority_levels",
        ({"queue": queue, "priority": p} for queue, p in {(j.queue, j.priority) for _, j in jobs}),
    )
    lines = limit_set_ids(session, (job.limit_keys for _, job in jobs if job.limit_keys))
    numbered = [(step.id, job) for step, job in jobs]
    session.each(
        "insert_workflow_jobs",
        (
            (
                *_limited(row, job, lines[job.limit_keys] if job.limit_keys else None),
                step.workflow_id,
                step.fence,
            )
            for row, (step, job) in zip(_records(numbered, now), jobs, strict=True)
        ),
    )
    session.hint()


def due(job: NewJob, now: int) -> int:
    """When a job may run."""
    run_at = micros(job.run_at)
    return now + span(job.delay) if run_at is None else run_at


def _records(jobs: Numbered, now: int) -> Iterator[Row]:
    for job_id, job in jobs:
        # Most are due at once: nothing is called for them.
        run_at = now if job.run_at is None and not job.delay else due(job, now)
        yield job_id, job.queue, job.task, job.priority, run_at, now, job.max_attempts, job.payload


def _insert_bound(session: Session, jobs: Numbered, now: int) -> None:
    lines = limit_set_ids(session, (job.limit_keys for _, job in jobs if job.limit_keys))
    session.each(
        "insert_limited_jobs",
        (
            (*_limited(row, job, lines[job.limit_keys] if job.limit_keys else None), job.trace)
            for row, (_, job) in zip(_records(jobs, now), jobs, strict=True)
        ),
    )


def _limited(row: Row, job: NewJob, limit_set_id: int | None) -> Row:
    run_at = row[4]
    if limit_set_id is None:
        return *row, _deadline(job, run_at), None, None
    return *row[:4], micros(LIMITED), *row[5:], _deadline(job, run_at), limit_set_id, run_at


def _deadline(job: NewJob, run_at: int) -> int | None:
    if job.expires_at is None and job.expires is not None:
        return run_at + span(job.expires)
    return micros(job.expires_at)


def _lock_keys(session: Session, jobs: Sequence[NewJob], ids: Sequence[int]) -> dict[bytes, Holder]:
    holders = {}
    for job, job_id in zip(jobs, ids, strict=True):
        key = job.unique
        if key is not None and key.digest not in holders:
            row = session.row("lock_keys", key=key.digest, name=key.name, job_id=job_id)
            holders[key.digest] = Holder(job_id=row["job_id"], until=maybe_moment(row["until"]))
    return holders


def _replace(session: Session, job: NewJob, job_id: int, now: int) -> None:
    session.change("add_priority_levels", queue=job.queue, priority=job.priority)
    session.change(
        "replace_job",
        id=job_id,
        payload=job.payload,
        priority=job.priority,
        queue=job.queue,
        max_attempts=job.max_attempts,
        trace=job.trace,
        run_at=due(job, now),
    )
