"""When a trigger fires next, with the odd nights marked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol, runtime_checkable

from mainspring.trigger.base import Trigger
from mainspring.trigger.bounded import Bounded
from mainspring.trigger.zones import zone

_NIGHT = timedelta(hours=26)
"""Changes of the clocks further away than this have nothing to do with a slot; Apia once left out a day."""
_SAMPLED, _SAMPLE, _SAMPLES = datetime(2026, 1, 5, tzinfo=UTC) - timedelta.resolution, timedelta(days=8), 4
SHIFTED, FIRST, SECOND = "gap: shifted", "fold: first", "fold: second"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
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


def fires(trigger: Trigger, after: datetime, count: int, tz: str) -> list[Fire]:
    """The next `count` slots strictly after an instant; fewer when the trigger ends."""
    shown = zone(tz)
    found: list[Fire] = []
    slot = trigger.next_after(after)
    while slot is not None and len(found) < count:
        local = slot.astimezone(shown)
        found.append(Fire(at=slot, local=local, note=_note(trigger, slot, local)))
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
    """What is odd about the local time of a slot of this trigger, if anything."""
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
