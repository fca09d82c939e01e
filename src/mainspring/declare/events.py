"""Events as callers send them."""

from __future__ import annotations

from typing import Any

from mainspring.declare.handle import JobHandle
from mainspring.declare.names import valid_name
from mainspring.declare.payload import LARGEST_PAYLOAD, encode_value
from mainspring.errors import InvalidArgument
from mainspring.model.event import EVERYBODY, Event


def new_event(name: str, payload: object, job: JobHandle[Any] | int | None) -> Event:
    """An event for one job, or for everybody; InvalidArgument says what is wrong with it."""
    return Event(
        name=valid_name(name, "name"),
        payload=encode_value(payload, "payload", LARGEST_PAYLOAD),
        job_id=EVERYBODY
        if job is None
        else valid_job_id(job.id if isinstance(job, JobHandle) else job, "job"),
    )


def valid_job_id(job_id: int, field: str) -> int:
    """The id itself, or InvalidArgument naming the field."""
    if isinstance(job_id, bool) or not isinstance(job_id, int) or not 0 < job_id < 2**63:
        raise InvalidArgument(field, job_id, "the id of a job, a whole number from 1")
    return job_id
