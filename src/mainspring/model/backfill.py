"""Backfills: slots of the past, run on request."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from mainspring.model.value import Value


class Reprocess(StrEnum):
    """Which slots that made a job are run once more."""

    NONE = "none"
    FAILED = "failed"
    """Those whose job died or was cancelled."""
    ALL = "all"
    """All whose job has ended."""


class BackfillState(StrEnum):
    """Where a backfill stands."""

    ACTIVE = "active"
    DONE = "done"
    CANCELLED = "cancelled"


class BackfillSlot(Value, frozen=True, kw_only=True):
    """A slot to be run, as the version in force at that time says."""

    slot_at: datetime
    schedule_id: int
    version: int
    seen: int | None = None
    """The job that the ledger named when this was planned: another one since means somebody was faster."""


class NewBackfill(Value, frozen=True, kw_only=True):
    """A backfill to be written, its slots in the order in which they are to run."""

    schedule: str
    start: datetime
    end: datetime
    slots: tuple[BackfillSlot, ...]
    author: str
    max_active: int = 1
    reverse: bool = False
    reprocess: Reprocess = Reprocess.NONE


class Backfill(Value, frozen=True, kw_only=True):
    """A backfill as it is on record."""

    id: int
    schedule: str
    start: datetime
    end: datetime
    author: str
    max_active: int
    reverse: bool
    reprocess: Reprocess
    state: BackfillState
    created_at: datetime
    ended_at: datetime | None
    cancelled_by: str | None
    slots: int
    """How many in all."""
    made: int
    """How many have their job."""
    left: int
    """How many were left alone, for somebody else had run them meanwhile."""
    live: int
    """How many of the jobs have not ended."""


class Advance(Value, frozen=True, kw_only=True):
    """What one pass over the active backfills found and did."""

    active: int
    made: int


class BackfillJob(Value, frozen=True, kw_only=True):
    """A job that a backfill made of a slot, and the one it did over."""

    slot_at: datetime
    job_id: int
    seen: int | None
