"""Which slot of a due spec to open, when others may have been missed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import msgspec

from mainspring.model.schedule import Opening, Skipped, Spec
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.slots import latest, newest, newest_kept, odd, previous
from mainspring.triggers.trigger import Trigger

LATE = timedelta(seconds=10)
"""Up to here a slot is late, not missed: it is opened for itself even if the next has passed too.
A busy second must not cost a schedule of seconds its slots."""
BREAKER = 1000
"""The number of live jobs of one schedule that trips the circuit breaker for its missed slots."""
CATCH_UP_PAUSE = timedelta(milliseconds=100)
"""Between two missed slots of one spec that are opened one by one: ten a second."""
_INSTANT = timedelta(microseconds=1)


def open_spec(spec: Spec, trigger: Trigger, now: datetime) -> Opening:
    """Open the due slot; or, when it was missed and others after it, what the spec's policy says.

    Where missed slots are coalesced, the newest is opened for all of them. Where each counts, they are
    opened one by one, but those older than the catch-up window are opened together, and so are all of them
    while the circuit breaker leaves them out for every schedule. Each schedule then decides for itself by
    its own policies and state, as the statement that fires it says. Nothing here loops over the time missed.
    """
    following = spec.following_at
    if following is None and not spec.planned:
        following = trigger.next_after(spec.next_at)
    if following is None or following > now or now - spec.next_at <= LATE:
        return _single(spec, trigger, following)
    if not spec.one_by_one:
        return _coalesced(spec, trigger, now)
    if spec.tripped:
        return _together(spec, trigger, now - LATE, following, Skipped.BREAKER)
    if spec.catch_up is not None:
        return _together(spec, trigger, now - spec.catch_up, following)
    return _single(spec, trigger, following)


def open_overdue(spec: Spec, trigger: Trigger | None, now: datetime) -> Iterator[Opening]:
    """Everything of it that is due and not opened, in order: what passes at this moment would open one after
    the other. Without a trigger, which this version cannot read, what was computed ahead is all there is."""
    while spec.next_at <= now:
        opening = _ahead(spec) if trigger is None else open_spec(spec, trigger, now)
        yield opening
        if opening.next_at is None:
            return
        spec = msgspec.structs.replace(spec, next_at=opening.next_at, following_at=None, planned=False)


def _ahead(spec: Spec) -> Opening:
    return Opening(
        spec_id=spec.id, expected=spec.next_at, slot_at=spec.next_at, since=None, next_at=spec.following_at
    )


def _single(spec: Spec, trigger: Trigger, following: datetime | None) -> Opening:
    skip = Skipped.CALENDAR if is_skipped(trigger, spec.next_at) else None
    return _opening(spec, trigger, spec.next_at, None, following, skip)


def _coalesced(spec: Spec, trigger: Trigger, now: datetime) -> Opening:
    return _up_to(spec, trigger, latest(trigger, spec.next_at, now))


def _together(
    spec: Spec, trigger: Trigger, oldest: datetime, following: datetime, skip: Skipped | None = None
) -> Opening:
    """All slots before `oldest`; the due one alone where it is none of them."""
    if spec.next_at >= oldest:
        return _single(spec, trigger, following)
    return _up_to(spec, trigger, latest(trigger, spec.next_at, oldest - _INSTANT), skip)


def _up_to(spec: Spec, trigger: Trigger, last: datetime, skip: Skipped | None = None) -> Opening:
    """The due slot and all after it up to `last`, in the name of the newest that no calendar leaves out."""
    kept = newest_kept(trigger, spec.next_at, last)
    slot = last if kept is None else kept
    since = spec.next_at if slot > spec.next_at else None
    following = trigger.next_after(slot)
    return _opening(spec, trigger, slot, since, following, Skipped.CALENDAR if kept is None else skip)


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
        combined=() if since is None else newest(trigger, since, slot, spec.skips),
        next_at=following,
        skip=skip,
        note=odd(trigger, slot),
        # Of combined slots there is more to say: it is looked up by the jobs that ask.
        previous=None if since is not None or skip else spec.last_at or previous(trigger, slot),
    )
