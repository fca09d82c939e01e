"""Plans: what the declared schedules of an app would change in the store (add, change, keep, remove). Also
writes the declared schedules and their calendars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Self

import msgspec

from mainspring.admin.schedules.versions import Difference, differences
from mainspring.clock import Clock
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import NewSchedule, Schedule, StoredCalendar
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry
from mainspring.tasks.schedule import ScheduleDeclaration

FIRES_SHOWN = 3
MOST_NAMED = 20
"""The most schedules that are named one by one: there may be a hundred thousand."""


class Action(StrEnum):
    """The change of one schedule in a plan."""

    ADD = "add"
    CHANGE = "change"
    KEEP = "keep"
    """The schedule was edited at run time: the code does not change it."""
    REMOVE = "remove"
    """The code no longer declares the schedule: --prune deletes it, otherwise it continues."""
    SAME = "same"


class Planned(Value, frozen=True, kw_only=True):
    """One schedule of a plan."""

    name: str
    action: Action
    differences: tuple[Difference, ...] = ()
    next_fires: tuple[datetime, ...] = ()
    dropped: int = 0
    """Slots that were due at the deletion, and get no job."""
    at_least: bool = False
    """Whether more slots than `dropped` may be affected."""


def plan(
    declared: Mapping[str, ScheduleDeclaration], stored: Sequence[Schedule], now: datetime
) -> list[Planned]:
    """All schedules that are declared, or that come from code, in order of name. A schedule that a user
    created or edited at run time, and that the app does not declare, is left out."""
    known = {schedule.name: schedule for schedule in stored}
    found = [_declared(each, known.get(name), now) for name, each in declared.items()]
    found += [
        Planned(name=schedule.name, action=Action.REMOVE)
        for schedule in stored
        if schedule.name not in declared and not schedule.edited
    ]
    return sorted(found, key=lambda each: each.name)


async def write_declared(store: Store, clock: Clock, registry: Registry) -> list[str]:
    """Write the schedules that an app declares; answer the names that were new or changed."""
    now = await store.now(at=clock.stamp())
    await write_calendars(store, registry.schedules.values())
    declared = [each.new_schedule(now) for each in registry.schedules.values()]
    return await store.schedules.put(declared, at=clock.stamp()) if declared else []


async def write_calendars(store: Store, schedules: Iterable[ScheduleDeclaration]) -> None:
    """Write the calendars of these schedules. Other dates under a stored version are refused, because slots
    were decided by that version."""
    # Thousands of schedules may name one calendar.
    declared = {id(each.calendar): each.calendar for each in schedules if each.calendar is not None}.values()
    if not declared:
        return
    stored = [StoredCalendar(name=c.name, version=c.version, definition=c.encode()) for c in declared]
    known = {(c.name, c.version): c.definition for c in await store.calendars.all()}
    new = [each for each in stored if (each.name, each.version) not in known]
    if new:
        await store.calendars.put(new)
        known = {(c.name, c.version): c.definition for c in await store.calendars.all()}
    for each in stored:
        if known[each.name, each.version] != each.definition:
            raise InvalidArgument(
                "calendar", f"{each.name} version {each.version}", "a new version: its dates have changed"
            )


def dropped_sentences(found: Iterable[Planned]) -> list[str]:
    """A sentence for each deleted schedule that had due slots; after many, one sentence for the others."""
    dropped = [each for each in found if each.dropped]
    why = "due and not yet decided when the schedule was deleted; no job was made"
    told = [f"{each.name}: {_slots(each.dropped, each.at_least)} {why}" for each in dropped[:MOST_NAMED]]
    if rest := dropped[MOST_NAMED:]:
        slots = _slots(sum(each.dropped for each in rest), any(each.at_least for each in rest))
        told.append(f"{len(rest)} other schedules: {slots} {why}")
    return told


class PlannedView(Value, frozen=True, kw_only=True):
    """One schedule of a plan as programs read it."""

    name: str
    action: Action
    differences: tuple[Difference, ...]
    next_fires: tuple[datetime, ...]
    dropped_slots: int

    @classmethod
    def of(cls, planned: Planned) -> Self:
        """Of one schedule of a plan."""
        return cls(
            name=planned.name,
            action=planned.action,
            differences=planned.differences,
            next_fires=planned.next_fires,
            dropped_slots=planned.dropped,
        )


def _declared(declaration: ScheduleDeclaration, stored: Schedule | None, now: datetime) -> Planned:
    fires = tuple(_fires(declaration, now))
    if stored is None:
        return Planned(name=declaration.name, action=Action.ADD, next_fires=fires)
    found = differences(stored, _as_stored(declaration.new_schedule(now), stored))
    action = Action.SAME if not found else Action.KEEP if stored.edited else Action.CHANGE
    return Planned(name=declaration.name, action=action, differences=found, next_fires=fires)


def _fires(declaration: ScheduleDeclaration, now: datetime) -> list[datetime]:
    found: list[datetime] = []
    slot = declaration.trigger.next_after(now)
    while slot is not None and len(found) < FIRES_SHOWN:
        found.append(slot)
        slot = declaration.trigger.next_after(slot)
    return found


def _as_stored(new: NewSchedule, stored: Schedule) -> Schedule:
    """The stored schedule with the values of the code."""
    said = {field: getattr(new, field) for field in new.__struct_fields__ if hasattr(stored, field)}
    return msgspec.structs.replace(stored, **said)


def _slots(count: int, at_least: object) -> str:
    return f"{'at least ' if at_least else ''}{count} {'slot was' if count == 1 else 'slots were'}"
