"""Uniqueness: what makes two jobs the same, for how long, and what becomes of the second."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from mainspring.model.value import Value


class Scope(StrEnum):
    """How long a key keeps others out."""

    QUEUED = "queued"
    """While its job waits. One that runs is too late for news: a second job is made."""
    FINISHED = "finished"
    """Until its job has ended, however."""
    PERIOD = "period"
    """For a length of time from when its job was made, whatever became of the job."""


class OnDuplicate(StrEnum):
    """What becomes of a job whose key is taken."""

    RETURN = "return"
    """The job there is stands for it."""
    REPLACE = "replace"
    """The job there is gets its arguments, its time and its priority; one that runs already refuses."""
    ERROR = "error"
    """It is refused."""


class Key(Value, frozen=True, kw_only=True):
    """The key of one job."""

    digest: bytes
    """SHA-256 of the task and what was named or derived: what is compared."""
    name: str
    """For people: the key as it was named, or the digest."""
    scope: Scope = Scope.FINISHED
    period: timedelta | None = None
    on_duplicate: OnDuplicate = OnDuplicate.RETURN


class Inserted(Value, frozen=True, kw_only=True):
    """What became of one job that was to be inserted."""

    job_id: int
    """Its own, or that of the job that stands for it."""
    created: bool = True
    replaced: bool = False
