"""What both dialects decide about backfills."""

from __future__ import annotations

import msgspec

from mainspring.model.backfill import BackfillState
from mainspring.model.schedule import Schedule

BATCH = 100
"""Jobs made for one backfill in one transaction, at most."""
MOST_ACTIVE = 100
"""Backfills looked at in one pass."""

_schedule = msgspec.json.Decoder(Schedule)


def definition(text: str) -> Schedule:
    """The version a slot is to be run as."""
    return _schedule.decode(text)


def note(backfill_id: int, author: str) -> str:
    """What the ledger says of a slot that a backfill ran."""
    return f"backfill {backfill_id} by {author}"


def state(ended: bool, cancelled_by: str | None) -> BackfillState:
    """Where a backfill stands."""
    if not ended:
        return BackfillState.ACTIVE
    return BackfillState.DONE if cancelled_by is None else BackfillState.CANCELLED
