"""Holidays from an iCalendar file (RFC 5545): its all-day events, and nothing else of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from mainspring.calendars.build import checked_years
from mainspring.calendars.calendar import LONGEST_LABEL, MOST_HOLIDAYS, Calendar
from mainspring.errors import InvalidArgument
from mainspring.trigger.rrule import RRule

LARGEST = 1_000_000
MOST_EVENTS, MOST_RULES, MOST_DAYS = 10_000, 1000, 366
_DATE = re.compile(r"\d{8}", re.ASCII)
_LENGTH = re.compile(r"P(\d{1,3})([DW])", re.ASCII)
_UNTIL_DATE = re.compile(r"(UNTIL=\d{8})(?=;|$)", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9-]+", re.ASCII)
_READ = {"SUMMARY", "DTSTART", "DTEND", "DURATION", "RRULE", "EXDATE", "STATUS"}
_BREAK = re.compile(r"\r\n|\n|\r")
_DAY = timedelta(days=1)
_ESCAPES = {"n": " ", "N": " ", ",": ",", ";": ";", "\\": "\\"}


@dataclass(slots=True)
class _Event:
    line: int
    values: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Property to its line and value."""
    excluded: set[date] = field(default_factory=set)


def from_ical(
    name: str,
    text: str,
    *,
    years: Iterable[int],
    version: int = 1,
    weekend: tuple[int, ...] = (5, 6),
    tz: str = "UTC",
) -> Calendar:
    """The dates of all events in these years; yearly rules are written out. Cancelled events do not count."""
    wanted = checked_years(years)
    if not isinstance(text, str) or len(text.encode(errors="replace")) > LARGEST:
        raise InvalidArgument("calendar.ical", text, f"text of at most {LARGEST} bytes")
    holidays: dict[date, str] = {}
    for event in _checked_events(text):
        for day, label in _dates(event, wanted):
            holidays[day] = label
            if len(holidays) > MOST_HOLIDAYS:
                raise _wrong(event.line, "this event", f"at most {MOST_HOLIDAYS} dates in all")
    return Calendar(name, version, weekend, holidays, tz)


def _checked_events(text: str) -> list[_Event]:
    events = [event for event in _events(text) if event.values.get("STATUS", (0, ""))[1] != "CANCELLED"]
    if len(events) > MOST_EVENTS or sum("RRULE" in event.values for event in events) > MOST_RULES:
        expected = f"at most {MOST_EVENTS} events, {MOST_RULES} with rules"
        raise InvalidArgument("calendar.ical", f"{len(events)} events", expected)
    return events


def _events(text: str) -> Iterator[_Event]:
    inside: list[str] = []
    event = _Event(0)
    number = 0
    for number, line in _unfolded(text):
        name, _, value = _property(number, line)
        if not inside and (name, value.upper()) != ("BEGIN", "VCALENDAR"):
            raise _wrong(number, line, "BEGIN:VCALENDAR")
        if name == "BEGIN":
            inside.append(value.upper())
            event = _Event(number) if inside[-1] == "VEVENT" else event
        elif name == "END":
            if inside.pop() != value.upper():
                raise _wrong(number, line, "the END of what began last")
            if value.upper() == "VEVENT":
                yield event
        elif inside[-1] == "VEVENT" and name in _READ:
            _keep(event, number, name, value)
    if inside or not number:
        raise _wrong(number, "the end of the text", f"END:{inside[-1]}" if inside else "BEGIN:VCALENDAR")


def _keep(event: _Event, number: int, name: str, value: str) -> None:
    if name == "EXDATE":
        event.excluded.update(_date(number, each) for each in value.split(","))
    elif name in event.values:
        raise _wrong(number, f"a second {name}", f"{name} once in an event")
    else:
        event.values[name] = number, value


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines, each with the number of its first; one that starts with a blank goes on the last."""
    first, parts = 0, [""]
    for number, line in enumerate(_BREAK.split(text.removeprefix("\ufeff")), 1):
        if line[:1] in (" ", "\t"):
            parts.append(line[1:])
            continue
        if joined := "".join(parts):
            yield first, joined
        first, parts = number, [line]
    if joined := "".join(parts):
        yield first, joined


def _property(number: int, line: str) -> tuple[str, str, str]:
    """Name, parameters and value. A colon in a quoted parameter does not end it."""
    quoted = False
    for place, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif character == ":" and not quoted:
            name, _, parameters = line[:place].partition(";")
            if _NAME.fullmatch(name):
                return name.upper(), parameters, line[place + 1 :].strip()
            break
    raise _wrong(number, line, "NAME:value")


def _dates(event: _Event, years: frozenset[int]) -> Iterator[tuple[date, str]]:
    if "DTSTART" not in event.values:
        raise _wrong(event.line, "an event without it", "DTSTART;VALUE=DATE")
    start = _date(*event.values["DTSTART"])
    days = _days(event, start)
    label = _label(event.values.get("SUMMARY", (0, ""))[1])
    for first in _starts(event, start, days, years):
        for each in range(days):
            if (first + each * _DAY).year in years and first not in event.excluded:
                yield first + each * _DAY, label


def _days(event: _Event, start: date) -> int:
    """How many dates an event covers; its end is the date after the last."""
    days, line = 1, event.line
    if "DTEND" in event.values:
        line, _ = event.values["DTEND"]
        # Some programs write the start as the end of a single day.
        days = (_date(*event.values["DTEND"]) - start).days or 1
    elif "DURATION" in event.values:
        line, value = event.values["DURATION"]
        length = _LENGTH.fullmatch(value)
        days = int(length[1]) * (7 if length[2] == "W" else 1) if length else 0
    if not 1 <= days <= MOST_DAYS:
        raise _wrong(line, f"{days} days", f"an event of 1 to {MOST_DAYS} whole days")
    return days


def _starts(event: _Event, start: date, days: int, years: frozenset[int]) -> Iterator[date]:
    if "RRULE" not in event.values:
        yield start
        return
    line, value = event.values["RRULE"]
    if "FREQ=YEARLY" not in value.upper().split(";"):
        raise _wrong(line, value, "FREQ=YEARLY, the only rule for holidays")
    midnight = datetime(start.year, start.month, start.day, tzinfo=UTC)
    try:
        rule = RRule(_UNTIL_DATE.sub(r"\1T000000Z", value), midnight)
    except InvalidArgument as refusal:
        raise _wrong(line, value, refusal.expected) from None
    slot = datetime(min(years), 1, 1, tzinfo=UTC) - (days + 1) * _DAY
    while (found := rule.next_after(slot)) is not None and found.year <= max(years):
        yield found.date()
        slot = found


def _date(number: int, value: str) -> date:
    try:
        if not _DATE.fullmatch(value):
            raise ValueError(value)
        return date(int(value[:4]), int(value[4:6]), int(value[6:]))
    except ValueError:
        raise _wrong(number, value, "a date without a time, such as 20261225") from None


def _label(text: str) -> str:
    plain = re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text)
    return "".join(each if each.isprintable() else " " for each in plain)[:LONGEST_LABEL].strip()


def _wrong(line: int, got: str, expected: str) -> InvalidArgument:
    return InvalidArgument(f"calendar.ical line {line}", got, expected)
