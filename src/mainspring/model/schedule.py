"""Schedules, the specs they share, and the slots they leave in the ledger."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from mainspring.model.job import DEFAULT_QUEUE
from mainspring.model.value import Value


class Misfire(StrEnum):
    """What becomes of slots that passed while nobody could fire them."""

    LATEST = "latest"
    """One job for the newest of them, if it is inside the catch-up window."""


class Disposition(StrEnum):
    """What became of a slot. Every slot has exactly one."""

    FIRED = "fired"
    SKIPPED = "skipped"


class NewSchedule(Value, frozen=True, kw_only=True):
    """A schedule to be written. `trigger` is its canonical JSON: equal triggers share one spec."""

    name: str
    task: str
    trigger: str
    payload: bytes
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int = 1
    misfire: Misfire = Misfire.LATEST
    catch_up: timedelta = timedelta(days=1)
    max_fires: int | None = None
    """How many slots may fire in all; None for no limit."""
    next_at: datetime | None = None
    """First and second slot after now, used when the trigger is new to the store."""
    following_at: datetime | None = None


class Schedule(Value, frozen=True, kw_only=True):
    """A schedule as it is on record."""

    id: int
    name: str
    task: str
    trigger: str
    payload: bytes
    queue: str
    priority: int
    max_attempts: int
    misfire: Misfire
    catch_up: timedelta
    version: int
    active_from: datetime
    """Slots at or before this moment are not this version's business."""
    next_at: datetime | None
    max_fires: int | None = None


class Spec(Value, frozen=True, kw_only=True):
    """A trigger that falls due, for every schedule that shares it."""

    id: int
    trigger: str
    next_at: datetime
    following_at: datetime | None
    """The slot after `next_at`, computed ahead; None when there is none or it is not yet known."""
    planned: bool = True
    """Whether `following_at` is known."""


class Opening(Value, frozen=True, kw_only=True):
    """A decision to open one slot of a spec, valid only while the spec still stands at `expected`."""

    spec_id: int
    expected: datetime
    slot_at: datetime
    since: datetime | None
    """First of the missed slots that this one stands for; None when none was missed."""
    next_at: datetime | None


class Chunk(Value, frozen=True, kw_only=True):
    """What one firing statement did to one part of one fire."""

    slot_at: datetime
    fired: int
    skipped: int
    late: timedelta


class Slot(Value, frozen=True, kw_only=True):
    """One row of the ledger."""

    schedule: str
    slot_at: datetime
    disposition: Disposition
    reason: str | None
    since: datetime | None
    """Slots of this schedule from here up to `slot_at` were coalesced into this one."""
    job_id: int | None
    decided_at: datetime
