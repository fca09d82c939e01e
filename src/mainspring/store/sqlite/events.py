"""Waits for events that jobs begin as they are settled, where one transaction writes at a time."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.run import Settlement
from mainspring.store.sqlite.connection import Session


def begin_waits(session: Session, settlements: Sequence[Settlement]) -> set[int]:
    """Put on record that these jobs wait, in the transaction that settles them; answer which need not, for
    their event has come."""
    found = {s.job_id for s in settlements if session.rows("event", job_id=s.job_id, name=s.awaits)}
    waits = [s for s in settlements if s.job_id not in found]
    session.each("put_waits", [{"job_id": s.job_id, "name": s.awaits, "fence": s.fence} for s in waits])
    return found
