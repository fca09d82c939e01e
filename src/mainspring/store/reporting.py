"""What both dialects decide about reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

BATCH = 5000
"""Rows a sweeping transaction changes, so that it has its locks for milliseconds only."""
SETTLED = timedelta(minutes=1)
"""How old a report of progress must be before anybody asks whether its run has ended."""


def day_before(now: datetime, keep: timedelta) -> datetime:
    """The start of the UTC day that `keep` ago lay in: days before it are past keeping."""
    return (now - keep).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
