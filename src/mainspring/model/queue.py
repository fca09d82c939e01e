"""Queues: what waits in them, and which are paused."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.value import Value


class QueuePause(Value, frozen=True, kw_only=True):
    """A queue from which nothing is claimed."""

    queue: str
    paused_at: datetime
    paused_by: str
    note: str | None = None


class QueueDepth(Value, frozen=True, kw_only=True):
    """What stands in one queue for one task."""

    queue: str
    task: str
    ready: int
    delayed: int
    running: int
    oldest_ready_at: datetime | None
    about: bool = False
    """There are too many to be counted: ready and delayed are estimates."""
