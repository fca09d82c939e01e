"""The nights on which the clocks change, in the zones that triggers follow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from mainspring.model.value import Value
from mainspring.triggers.rolled import Rolled
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import zone

_STEP = timedelta(days=1)
_EXACT = timedelta(seconds=1)
_NAMED = 3


class Night(Value, frozen=True, kw_only=True):
    """One instant at which the clocks of some zones change."""

    at: datetime
    zones: tuple[str, ...]
    was: datetime
    """What the clocks of the first zone show when it comes, and what they show then."""
    now: datetime

    @property
    def forward(self) -> bool:
        """Whether local times are left out; else they come twice."""
        return self.now.replace(tzinfo=None) > self.was.replace(tzinfo=None)

    @property
    def sentence(self) -> str:
        """In words."""
        named = ", ".join(self.zones[:_NAMED])
        more = len(self.zones) - _NAMED
        who = named + (f" and {more} more" if more > 0 else "")
        what = "are skipped" if self.forward else "come twice"
        first, last = (self.was, self.now) if self.forward else (self.now, self.was)
        return (
            f"{who}: clocks change at {self.was:%H:%M}, and times from {first:%H:%M} to {last:%H:%M} {what}"
        )


def zones_of(trigger: Trigger) -> set[str]:
    """The zones whose clocks a trigger follows."""
    match trigger:
        case Bounded():
            return zones_of(trigger.trigger)
        case Rolled():
            return {trigger.tz} | zones_of(trigger.trigger)
        case _:
            tz = getattr(trigger, "tz", None)
            return set() if tz is None else {tz}


def nights(zones: Iterable[str], start: datetime, end: datetime) -> tuple[Night, ...]:
    """Every change of the clocks from `start` on and before `end`, in order; zones that change alike are
    told together."""
    found: dict[tuple[datetime, datetime, datetime], list[str]] = defaultdict(list)
    for name in sorted(set(zones)):
        for at in _changes(name, start, end):
            was, now = _wall(name, at - timedelta(microseconds=1)), _wall(name, at)
            # The clocks show the last moment before; one instant later is what people call it.
            found[at, was + timedelta(microseconds=1), now].append(name)
    return tuple(
        Night(at=at, zones=tuple(names), was=was.replace(tzinfo=UTC), now=now.replace(tzinfo=UTC))
        for (at, was, now), names in sorted(found.items())
    )


def _changes(name: str, start: datetime, end: datetime) -> list[datetime]:
    found = []
    day = start
    while day < end:
        following = min(day + _STEP, end)
        if _offset(name, day) != _offset(name, following):
            found.append(_between(name, day, following))
        day = following
    return found


def _between(name: str, low: datetime, high: datetime) -> datetime:
    """The first instant, to the second, at which the zone has its new offset."""
    before = _offset(name, low)
    while high - low > _EXACT:
        middle = low + (high - low) / 2
        low, high = (middle, high) if _offset(name, middle) == before else (low, middle)
    return high.replace(microsecond=0)


def _offset(name: str, at: datetime) -> timedelta | None:
    return at.astimezone(zone(name)).utcoffset()


def _wall(name: str, at: datetime) -> datetime:
    return at.astimezone(zone(name)).replace(tzinfo=None)
