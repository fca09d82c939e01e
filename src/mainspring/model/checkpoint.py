"""What the runs of a job have recorded for later runs, and the events that jobs wait for."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from mainspring.model.value import Value

EVERYBODY = 0
"""In place of a job's id: for every job that waits or will wait."""


class CheckpointKind(StrEnum):
    """What a checkpoint records; each kind has its own names."""

    STEP = "step"
    """A function has returned; its value is that, in JSON."""
    SLEEP = "sleep"
    """A sleep has begun; its value is its length in seconds."""
    WAIT = "wait"
    """A wait for an event has begun; its value is the timeout in seconds."""
    EVENT = "event"
    """A wait is over; its value is the event's payload, or nothing if the timeout came first."""

    def key(self, name: str) -> str:
        """Its name in the store: no name has a space, so no `ctx.once()` can have it."""
        return f"{self.value} {name}"


class Checkpoint(Value, frozen=True, kw_only=True):
    """Something that one run recorded, and no run records again."""

    name: str
    value: bytes | None
    done_at: datetime


class Recorded(Value, frozen=True, kw_only=True):
    """Everything a job's runs have recorded, in no order, and the store's now."""

    now: datetime
    checkpoints: tuple[Checkpoint, ...] = ()


class Event(Value, frozen=True, kw_only=True):
    """A named message that is sent once: to one job, or to every job that waits for it."""

    name: str
    payload: bytes
    """JSON; `null` when there is nothing to say."""
    job_id: int = EVERYBODY
