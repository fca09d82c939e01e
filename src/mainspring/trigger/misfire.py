"""Which slot of a due spec to open, when others may have been missed."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.model.schedule import Opening, Spec
from mainspring.trigger.base import Trigger
from mainspring.trigger.latest import latest

LATE = timedelta(seconds=10)
"""Up to here a slot is late, not missed: it is opened for itself even if the next has passed too.
A busy second must not cost a schedule of seconds its slots."""


def open_spec(spec: Spec, trigger: Trigger, now: datetime) -> Opening:
    """Open the due slot; or, when it was missed and others after it, the newest one for all of them."""
    following = spec.following_at
    if following is None and not spec.planned:
        following = trigger.next_after(spec.next_at)
    if following is None or following > now or now - spec.next_at <= LATE:
        return _opening(spec, spec.next_at, None, following)
    slot = latest(trigger, following, now)
    return _opening(spec, slot, spec.next_at, trigger.next_after(slot))


def _opening(spec: Spec, slot: datetime, since: datetime | None, following: datetime | None) -> Opening:
    return Opening(
        spec_id=spec.id,
        expected=spec.next_at,
        slot_at=slot,
        since=since,
        next_at=following,
    )
