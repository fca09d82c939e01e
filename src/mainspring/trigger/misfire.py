"""Which slot of a due spec to open, when others may have been missed."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.model.schedule import Opening, Skipped, Spec
from mainspring.trigger.base import Trigger
from mainspring.trigger.latest import latest
from mainspring.trigger.preview import odd
from mainspring.trigger.rolled import is_skipped

LATE = timedelta(seconds=10)
"""Up to here a slot is late, not missed: it is opened for itself even if the next has passed too.
A busy second must not cost a schedule of seconds its slots."""
BREAKER = timedelta(days=1)
CATCH_UP_PAUSE = timedelta(milliseconds=100)
"""Between two missed slots of one spec that are opened one by one: ten a second."""
_INSTANT = timedelta(microseconds=1)
_STRIDE = timedelta(hours=12)
_FURTHEST = timedelta(days=366)


def open_spec(spec: Spec, trigger: Trigger, now: datetime, *, breaker: timedelta = BREAKER) -> Opening:
    """Open the due slot; or, when it was missed and others after it, what the spec's policy says.

    Where missed slots are coalesced, the newest is opened for all of them. Where each counts, they are
    opened one by one, but those older than the catch-up window, or than what the breaker lets through,
    are skipped together. Nothing here loops over the time missed.
    """
    following = spec.following_at
    if following is None and not spec.planned:
        following = trigger.next_after(spec.next_at)
    if following is None or following > now or now - spec.next_at <= LATE:
        return _single(spec, trigger, following)
    if spec.catch_up is None:
        return _coalesced(spec, trigger, now)
    return _one_by_one(spec, trigger, now, following, breaker)


def _single(spec: Spec, trigger: Trigger, following: datetime | None) -> Opening:
    skip = Skipped.CALENDAR if is_skipped(trigger, spec.next_at) else None
    return _opening(spec, trigger, spec.next_at, None, following, skip)


def _coalesced(spec: Spec, trigger: Trigger, now: datetime) -> Opening:
    newest = latest(trigger, spec.next_at, now)
    kept = _newest_kept(trigger, spec.next_at, newest)
    slot = newest if kept is None else kept
    since = spec.next_at if slot > spec.next_at else None
    skip = Skipped.CALENDAR if kept is None else None
    return _opening(spec, trigger, slot, since, trigger.next_after(slot), skip)


def _newest_kept(trigger: Trigger, first: datetime, newest: datetime) -> datetime | None:
    """The newest slot that no calendar takes away: Friday's run must not be lost over a weekend."""
    low, high = newest, newest
    while is_skipped(trigger, low):
        high = low
        if low == first or newest - low > _FURTHEST:
            return None
        low = latest(trigger, first, max(low - _STRIDE, first))
    while (following := trigger.next_after(low)) is not None and following < high:
        middle = latest(trigger, low, low + (high - low) / 2)
        middle = following if middle == low else middle
        low, high = (low, middle) if is_skipped(trigger, middle) else (middle, high)
    return low


def _one_by_one(
    spec: Spec, trigger: Trigger, now: datetime, following: datetime, breaker: timedelta
) -> Opening:
    window = spec.catch_up if spec.catch_up is not None else breaker
    oldest = now - min(window, breaker)
    if spec.next_at >= oldest:
        return _single(spec, trigger, following)
    last = latest(trigger, spec.next_at, oldest - _INSTANT)
    since = spec.next_at if last > spec.next_at else None
    reason = Skipped.BREAKER if breaker < window else Skipped.MISFIRE
    return _opening(spec, trigger, last, since, trigger.next_after(last), reason)


def _opening(
    spec: Spec,
    trigger: Trigger,
    slot: datetime,
    since: datetime | None,
    following: datetime | None,
    skip: Skipped | None = None,
) -> Opening:
    return Opening(
        spec_id=spec.id,
        expected=spec.next_at,
        slot_at=slot,
        since=since,
        next_at=following,
        skip=skip,
        note=odd(trigger, slot),
    )
