"""What code declares, put on record: schedules, and the calendars that they name."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.clock import Clock
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import StoredCalendar
from mainspring.store.store import Store
from mainspring.tasks.registry import Registry
from mainspring.tasks.schedule import ScheduleDeclaration


async def write_declared(store: Store, clock: Clock, registry: Registry) -> list[str]:
    """Write the schedules that an app declares; answer the names that were new or changed."""
    now = await store.now(at=clock.stamp())
    await write_calendars(store, registry.schedules.values())
    declared = [each.new_schedule(now) for each in registry.schedules.values()]
    return await store.schedules.put(declared, at=clock.stamp()) if declared else []


async def write_calendars(store: Store, schedules: Iterable[ScheduleDeclaration]) -> None:
    """Those that these schedules name. Other dates under a version that is on record are refused: slots have
    been decided by it."""
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
