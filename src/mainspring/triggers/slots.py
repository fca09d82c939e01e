"""Questions about the slots of a trigger: the next ones, the newest missed one, how many, what is odd."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

from mainspring.model.schedule import Period
from mainspring.triggers.intervals import Every
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import zone

_SECOND = timedelta(seconds=1)
_INSTANT = timedelta(microseconds=1)
_STRIDE = timedelta(hours=12)
_FURTHEST = timedelta(days=366)
"""How far back a slot is looked for that no calendar leaves out."""
_LONGEST = timedelta(days=36525)
MOST_COUNTED = 10_000
"""So many slots of a calendar are counted one by one; those of an interval are computed, however many."""
_NIGHT = timedelta(hours=26)
"""Changes of the clocks further away than this have nothing to do with a slot; Apia once left out a day."""
_SAMPLED, _SAMPLE, _SAMPLES = datetime(2026, 1, 5, tzinfo=UTC) - timedelta.resolution, timedelta(days=8), 4
SHIFTED, FIRST, SECOND = "gap: shifted", "fold: first", "fold: second"


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


def newest_kept(trigger: Trigger, first: datetime, newest: datetime) -> datetime | None:
    """The newest slot, not after this one, that no calendar takes away: Friday's run must not be lost over a
    weekend."""
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


def previous(trigger: Trigger, slot: datetime) -> datetime | None:
    """The slot before this one, but for those that a calendar leaves out; None where there is none."""
    if isinstance(trigger, Every):
        return slot - trigger.period
    following = trigger.next_after(slot)
    leap = _SECOND if following is None else following - slot
    while leap < _LONGEST:
        first = trigger.next_after(slot - leap)
        if first is not None and first < slot:
            newest = latest(trigger, first, slot - _INSTANT)
            if not is_skipped(trigger, newest):
                return newest
            kept = newest_kept(trigger, trigger.next_after(newest - _FURTHEST) or newest, newest)
            return None if kept is None or is_skipped(trigger, kept) else kept
        leap *= 2
    return None


def count_slots(trigger: Trigger, first: datetime, end: datetime) -> tuple[int, bool]:
    """How many slots there are from `first`, which is one, to before `end`, but for those that a calendar
    leaves out; and whether there may be more."""
    plain = trigger.trigger if isinstance(trigger, Bounded) else trigger
    if isinstance(plain, Every):
        return -((first - end) // plain.period), False
    count, walked, slot = 0, 0, first
    while slot < end and walked < MOST_COUNTED:
        count, walked = count + (not is_skipped(trigger, slot)), walked + 1
        following = trigger.next_after(slot)
        if following is None:
            break
        slot = following
    return count, slot < end and walked == MOST_COUNTED


def newest(trigger: Trigger, first: datetime, end: datetime, count: int) -> tuple[datetime, ...]:
    """The newest slots from `first`, which is one, to before `end`, as many as `count`, but for those that a
    calendar leaves out; the newest first."""
    found: list[datetime] = []
    while len(found) < count and first < end:
        kept = newest_kept(trigger, first, latest(trigger, first, end - _INSTANT))
        if kept is None:
            break
        found.append(kept)
        end = kept
    return tuple(found)


def period(
    trigger: Trigger, slot: datetime, *, since: datetime | None = None, backfill: bool = False
) -> Period:
    """What the job of this slot stands for, which missed slots from `since` on were combined into."""
    before = previous(trigger, slot)
    if since is not None and trigger.next_after(since - _INSTANT) != since:
        since = trigger.next_after(since)  # from when the schedule was made or resumed, which was no slot
    if since is None or since >= slot:
        return Period(end=slot, start=before, previous=before, backfill=backfill)
    missed, at_least = count_slots(trigger, since, slot)
    return Period(
        end=slot,
        start=previous(trigger, since),
        previous=before,
        since=since,
        missed=missed,
        at_least=at_least,
        backfill=backfill,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingSlot:
    """A slot to come, in UTC and as the clocks of a zone show it."""

    at: datetime
    local: datetime
    note: str | None
    """That a skipped time has been moved here, or which of two equal local times this is."""


@runtime_checkable
class Shifts(Protocol):
    """A trigger that knows wall times, some of which a zone may skip."""

    def shifted(self, slot: datetime) -> bool:
        """Whether a wall time that did not exist has come to lie on this slot."""


def upcoming_slots(trigger: Trigger, after: datetime, count: int, tz: str) -> list[UpcomingSlot]:
    """The next `count` slots strictly after an instant; fewer when the trigger ends."""
    shown = zone(tz)
    found: list[UpcomingSlot] = []
    slot = trigger.next_after(after)
    while slot is not None and len(found) < count:
        local = slot.astimezone(shown)
        found.append(UpcomingSlot(at=slot, local=local, note=_note(trigger, slot, local)))
        slot = trigger.next_after(slot)
    return found


def shortest_gap(trigger: Trigger) -> timedelta:
    """The shortest time between some slots of this trigger that follow each other, always of the same ones;
    years where it has one slot or none."""
    slot = trigger.next_after(_SAMPLED)
    until, shortest = (slot or _SAMPLED) + _SAMPLE, timedelta.max
    for _ in range(_SAMPLES):
        following = None if slot is None or slot > until else trigger.next_after(slot)
        if slot is None or following is None:
            break
        shortest, slot = min(shortest, following - slot), following
    return shortest


def odd(trigger: Trigger, slot: datetime) -> str | None:
    """A note if the local time of this slot is unusual: skipped or repeated by a clock change."""
    plain = trigger.trigger if isinstance(trigger, Bounded) else trigger
    tz = getattr(plain, "tz", "UTC")
    if tz == "UTC":
        return None
    shown = zone(tz)
    if (slot - _NIGHT).astimezone(shown).utcoffset() == (slot + _NIGHT).astimezone(shown).utcoffset():
        return None  # nearly always, and cheap: this is asked for every slot that is opened
    return _note(plain, slot, slot.astimezone(shown))


def _note(trigger: Trigger, slot: datetime, local: datetime) -> str | None:
    if isinstance(trigger, Shifts) and trigger.shifted(slot):
        return SHIFTED
    if local.replace(fold=1 - local.fold).astimezone(UTC) == slot:
        return None
    return SECOND if local.fold else FIRST
