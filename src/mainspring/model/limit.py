"""Limits: how many jobs may run at once or start in a time, for a name and a key."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.model.value import Value


class LimitKey(Value, frozen=True, kw_only=True):
    """What a job must pass before a worker may claim it. Jobs that name the same limit key share it."""

    name: str
    key: str = ""
    """The value that has a limit key of its own, such as a tenant. Empty for a limit key that all jobs
    share."""
    concurrency: int | None = None
    """How many jobs behind it may be live at once, running or about to be."""
    rate: int | None = None
    """How many jobs may pass in each `period`."""
    period: timedelta | None = None
    burst: int = 1
    """How many of them at once, after a pause."""
    window: int | None = None
    """How many jobs may have passed and not yet be claimed: keeps one key from filling the queue."""


class LimitKeyInfo(Value, frozen=True, kw_only=True):
    """A limit key as it stands."""

    id: int
    limit_key: LimitKey
    used: int
    """Jobs that are through and have not ended."""
    waiting: int
    """Jobs before it, counted up to a bound."""
    holders: tuple[int, ...]
    """The first of those that are through."""


class Admission(Value, frozen=True, kw_only=True):
    """What one pass at the limit keys did."""

    admitted: int = 0
    waiting: bool = False
    """Whether any job waits."""
    after: int = 0
    """Where the next pass goes on; 0 when this one saw every line."""
    busy: bool = False
    """Another process did this pass."""
    again_at: datetime | None = None
    """When a rate lets the next one through."""
