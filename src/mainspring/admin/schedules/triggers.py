"""Stored triggers, read back with the calendars they name."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.calendars import decode_calendar
from mainspring.errors import InvalidArgument
from mainspring.store.store import Store
from mainspring.trigger import codec
from mainspring.trigger.base import Trigger
from mainspring.trigger.codec import Calendars


async def calendars_of(store: Store, triggers: Iterable[str]) -> Calendars:
    """Every stored calendar if one of the triggers names one; the store is not asked otherwise."""
    if not any(_names_calendar(each) for each in triggers):
        return {}
    return {
        (each.name, each.version): decode_calendar(each.definition) for each in await store.calendars.all()
    }


def readable(trigger: str, calendars: Calendars) -> Trigger | None:
    """The trigger, unless another version wrote it in a way this one cannot read."""
    try:
        return codec.decode(trigger, calendars)
    except InvalidArgument:
        return None


def _names_calendar(trigger: str) -> bool:
    try:
        return codec.calendar_of(trigger) is not None
    except InvalidArgument:
        return False
