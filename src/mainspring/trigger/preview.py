"""When a trigger fires next, with the odd nights marked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable

from mainspring.trigger.base import Trigger
from mainspring.trigger.zones import zone

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


def _note(trigger: Trigger, slot: datetime, local: datetime) -> str | None:
    if isinstance(trigger, Shifts) and trigger.shifted(slot):
        return SHIFTED
    if local.replace(fold=1 - local.fold).astimezone(UTC) == slot:
        return None
    return SECOND if local.fold else FIRST
