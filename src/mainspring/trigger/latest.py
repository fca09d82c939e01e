"""The newest slot that has passed, found without walking through those before it."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.trigger.base import Trigger

_SECOND = timedelta(seconds=1)


def latest(trigger: Trigger, first: datetime, now: datetime) -> datetime:
    """The last slot at or before `now`, given that `first` is one.

    Leaps back from now, doubling, until a slot lies in between; then halves the rest. The cost
    grows with the logarithm of the time missed.
    """
    slot, high = _leap_back(trigger, first, now)
    while (following := trigger.next_after(slot)) is not None and following <= now:
        slot = following
        middle = slot + (high - slot) / 2
        beyond = trigger.next_after(middle)
        if beyond is not None and beyond <= now:
            slot = beyond
        else:
            high = middle
    return slot


def _leap_back(trigger: Trigger, first: datetime, now: datetime) -> tuple[datetime, datetime]:
    """A slot at or before now, and a later moment after which none is left."""
    ahead = trigger.next_after(now)
    leap = _SECOND if ahead is None else ahead - now
    high = now
    while now - leap > first:
        slot = trigger.next_after(now - leap)
        if slot is not None and slot <= now:
            return slot, high
        high = now - leap
        leap *= 2
    return first, high
