"""Events: what jobs wait for and somebody sends."""

from __future__ import annotations

from mainspring.model.value import Value

EVERYBODY = 0
"""In place of a job's id: for every job that waits, or will wait."""


class Event(Value, frozen=True, kw_only=True):
    """Something that happened, once: to one job, or for everybody."""

    name: str
    payload: bytes
    """JSON; `null` when there is nothing to say."""
    job_id: int = EVERYBODY
