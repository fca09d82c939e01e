"""Inserting jobs that have keys on SQLite, inside a transaction that has the write lock."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.job import Inserted, NewJob
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.inserting import due, insert
from mainspring.store.sqlite.rows import listed, maybe_moment, moment, span
from mainspring.store.uniqueness import Holder, decide


def insert_unique(session: Session, jobs: Sequence[NewJob], now: int) -> list[Inserted]:
    """Make each job, or find the one that stands for it."""
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


def _lock_keys(session: Session, jobs: Sequence[NewJob], ids: Sequence[int]) -> dict[bytes, Holder]:
    holders = {}
    for job, job_id in zip(jobs, ids, strict=True):
        key = job.unique
        if key is not None and key.digest not in holders:
            row = session.row("lock_keys", key=key.digest, name=key.name, job_id=job_id)
            holders[key.digest] = Holder(job_id=row["job_id"], until=maybe_moment(row["until"]))
    return holders


def _replace(session: Session, job: NewJob, job_id: int, now: int) -> None:
    session.change("add_lanes", queue=job.queue, priority=job.priority)
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
