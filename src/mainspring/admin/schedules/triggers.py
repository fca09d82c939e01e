"""Stored triggers, decoded with their calendars."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.errors import InvalidArgument
from mainspring.store.store import Store
from mainspring.triggers import codec
from mainspring.triggers.calendars import decode_calendar
from mainspring.triggers.codec import Calendars
from mainspring.triggers.trigger import Trigger


async def calendars_of(store: Store, triggers: Iterable[str]) -> Calendars:
    """Every stored calendar if one of the triggers names one; otherwise the store is not read."""
    if not any(_names_calendar(each) for each in triggers):
        return {}
    return {
        (each.name, each.version): decode_calendar(each.definition) for each in await store.calendars.all()
    }


def readable(trigger: str, calendars: Calendars) -> Trigger | None:
    """The trigger; None if another version wrote it in a form that this version cannot read."""
    try:
        return codec.decode(trigger, calendars)
    except InvalidArgument:
        return None


def _names_calendar(trigger: str) -> bool:
    try:
        return codec.calendar_of(trigger) is not None
    except InvalidArgument:
        return False
