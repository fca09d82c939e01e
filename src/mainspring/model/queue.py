"""Queues that somebody has paused."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.value import Value


class QueuePause(Value, frozen=True, kw_only=True):
    """A queue from which nothing is claimed."""

    queue: str
    paused_at: datetime
    paused_by: str
    note: str | None = None
