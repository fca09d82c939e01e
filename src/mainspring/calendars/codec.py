"""From a calendar's canonical JSON back to the calendar."""

from __future__ import annotations

from datetime import date

import msgspec

from mainspring.calendars.calendar import Calendar
from mainspring.errors import InvalidArgument


class _Calendar(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: int
    weekend: tuple[int, ...]
    holidays: dict[date, str]
    tz: str


def decode_calendar(text: str) -> Calendar:
    """Read what `Calendar.encode` wrote."""
    try:
        facts = msgspec.json.decode(text, type=_Calendar)
    except msgspec.MsgspecError:
        raise InvalidArgument("calendar", text, "a calendar as `encode` writes it") from None
    return Calendar(facts.name, facts.version, facts.weekend, facts.holidays, facts.tz)
