"""From a trigger's canonical JSON back to the trigger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from mainspring.errors import InvalidArgument
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import EPOCH, Every, Instants
from mainspring.triggers.rolled import BusinessDays, Roll, Rolled
from mainspring.triggers.rrule import RRule
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import FoldOption, GapOption

_SPECS_IN_USE = 65_536
Calendars = Mapping[tuple[str, int], BusinessDays]
"""Calendars by name and version."""


class _Cron(msgspec.Struct, forbid_unknown_fields=True):
    cron: str
    tz: str
    gap: GapOption = "shift"
    fold: FoldOption = "first"


class _Every(msgspec.Struct, forbid_unknown_fields=True):
    every: float
    anchor: datetime = EPOCH


class _Instants(msgspec.Struct, forbid_unknown_fields=True):
    at: tuple[datetime, ...]


class _RRule(msgspec.Struct, forbid_unknown_fields=True):
    rrule: str
    dtstart: datetime
    tz: str
    exdates: tuple[datetime, ...] = ()
    rdates: tuple[datetime, ...] = ()


class _Bounded(msgspec.Struct, forbid_unknown_fields=True):
    bounded: msgspec.Raw
    start: datetime | None = None
    end: datetime | None = None


class _CalendarName(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    version: int


class _Rolled(msgspec.Struct, forbid_unknown_fields=True):
    rolled: msgspec.Raw
    roll: Roll
    calendar: _CalendarName
    tz: str


class _RolledName(msgspec.Struct):
    calendar: _CalendarName


def decode(text: str, calendars: Calendars | None = None) -> Trigger:
    """Read what `Trigger.encode` wrote; the same text gives the same object, unless it names a calendar."""
    return _read(text, calendars or {}) if '"calendar":{' in text else _plain(text)


def calendar_of(text: str) -> tuple[str, int] | None:
    """Name and version of the calendar that a trigger's text needs, if any."""
    if '"calendar":{' not in text:
        return None
    try:
        facts = msgspec.json.decode(text)
        rolled = msgspec.convert(facts.get("bounded", facts), type=_RolledName)
    except (msgspec.MsgspecError, AttributeError):
        raise _unreadable(text) from None
    return rolled.calendar.name, rolled.calendar.version


@lru_cache(maxsize=_SPECS_IN_USE)
def _plain(text: str) -> Trigger:
    return _read(text, {})


def _read(text: str, calendars: Calendars) -> Trigger:
    try:
        kinds = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        kind = next((kind for kind in _READERS if kind in kinds), "cron")
        return _READERS[kind](text, calendars)
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        raise _unreadable(text) from None


def _cron(text: str, calendars: Calendars) -> Trigger:
    cron = msgspec.json.decode(text, type=_Cron)
    return Cron(cron.cron, cron.tz, cron.gap, cron.fold)


def _every(text: str, calendars: Calendars) -> Trigger:
    every = msgspec.json.decode(text, type=_Every)
    return Every(timedelta(seconds=every.every), every.anchor)


def _instants(text: str, calendars: Calendars) -> Trigger:
    return Instants(msgspec.json.decode(text, type=_Instants).at)


def _rrule(text: str, calendars: Calendars) -> Trigger:
    rule = msgspec.json.decode(text, type=_RRule)
    return RRule(rule.rrule, rule.dtstart, rule.tz, rule.exdates, rule.rdates)


def _bounded(text: str, calendars: Calendars) -> Trigger:
    bounded = msgspec.json.decode(text, type=_Bounded)
    inner = decode(bytes(bounded.bounded).decode(), calendars)
    return Bounded(inner, bounded.start, bounded.end)


def _rolled(text: str, calendars: Calendars) -> Trigger:
    rolled = msgspec.json.decode(text, type=_Rolled)
    wanted = rolled.calendar.name, rolled.calendar.version
    if wanted not in calendars:
        raise InvalidArgument("calendar", wanted[0], f"a calendar that is known in version {wanted[1]}")
    inner = decode(bytes(rolled.rolled).decode(), calendars)
    return Rolled(inner, calendars[wanted], rolled.roll, rolled.tz)


def _unreadable(text: str) -> InvalidArgument:
    return InvalidArgument("trigger", text, "a trigger as `encode` writes it")


_READERS: dict[str, Callable[[str, Calendars], Trigger]] = {
    "bounded": _bounded,
    "rolled": _rolled,
    "every": _every,
    "rrule": _rrule,
    "at": _instants,
    "cron": _cron,
}
