"""Readers of PostgreSQL rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from mainspring.model.job import Claim, Failure
from mainspring.store.postgres.names import Names
from mainspring.store.rows import maybe_moment

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

_failure = msgspec.json.Decoder(Failure)


def written(failure: Failure | None) -> str:
    """A failure as jsonb takes it."""
    return msgspec.json.encode(failure).decode()


def failure(text: str | None) -> Failure | None:
    """A failure from its text."""
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
        limit_set_id,
        crashes,
        expires_in,
        workflow_id,
        trace,
        waited,
        previous_at,
    ) = row
    if schedule_id is not None:
        slot_at, previous_at = maybe_moment(slot_at), maybe_moment(previous_at)  # handlers compute with them
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
        limited=limit_set_id is not None,
        crashes=crashes,
        expires_in=expires_in,
        workflow_id=workflow_id,
        trace=trace,
        waited=waited,
        previous_at=previous_at,
        database_id=database_id,
    )
