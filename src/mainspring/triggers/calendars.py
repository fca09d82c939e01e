"""Business calendars: which dates are business days, from dates, a country or an iCalendar file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

import msgspec

from mainspring.errors import InvalidArgument
from mainspring.triggers.rrule import RRule
from mainspring.triggers.zones import zone

_MOST_HOLIDAYS = 10_000
_LONGEST_LABEL = 200
_SEARCHED = 366
_DAY = timedelta(days=1)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_MOST_YEARS = 200
LARGEST = 1_000_000
_MOST_EVENTS, _MOST_RULES, _MOST_DAYS = 10_000, 1000, 366
_DATE = re.compile(r"\d{8}", re.ASCII)
_LENGTH = re.compile(r"P(\d{1,3})([DW])", re.ASCII)
_UNTIL_DATE = re.compile(r"(UNTIL=\d{8})(?=;|$)", re.ASCII | re.IGNORECASE)
_PROPERTY_NAME = re.compile(r"[A-Za-z0-9-]+", re.ASCII)
_READ = {"SUMMARY", "DTSTART", "DTEND", "DURATION", "RRULE", "EXDATE", "STATUS"}
_BREAK = re.compile(r"\r\n|\n|\r")
_ONE_DAY = timedelta(days=1)
_ESCAPES = {"n": " ", "N": " ", ",": ",", ";": ";", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Calendar:
    """Weekends and holidays under a name. What changes gets a new version; the old one stays as it was.

    `weekend` counts weekdays from Monday, which is 0. `tz` is the zone of slots that have none of
    their own, such as those of an interval.
    """

    name: str
    version: int = 1
    weekend: tuple[int, ...] = (5, 6)
    holidays: Mapping[date, str] = field(default_factory=dict)
    tz: str = "UTC"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise InvalidArgument("calendar.name", self.name, "letters, digits, dots, dashes; at most 100")
        if not isinstance(self.version, int) or isinstance(self.version, bool) or self.version < 1:
            raise InvalidArgument("calendar.version", self.version, "a whole number from 1")
        zone(self.tz)
        object.__setattr__(self, "weekend", _weekend(self.weekend))
        object.__setattr__(self, "holidays", _holidays(self.holidays))

    def __hash__(self) -> int:
        return hash((self.name, self.version))

    def is_business_day(self, day: date) -> bool:
        return day.weekday() not in self.weekend and day not in self.holidays

    def next_business_day(self, day: date) -> date:
        """The first business day at or after this date."""
        return self._search(day, _DAY)

    def previous_business_day(self, day: date) -> date:
        """The last business day at or before this date."""
        return self._search(day, -_DAY)

    def encode(self) -> str:
        """Canonical JSON: equal calendars give equal text, and `decode_calendar` reads it back."""
        facts = {
            "name": self.name,
            "version": self.version,
            "weekend": self.weekend,
            "holidays": {day.isoformat(): label for day, label in self.holidays.items()},
            "tz": self.tz,
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def _search(self, day: date, step: timedelta) -> date:
        found = day
        for _ in range(_SEARCHED):
            if self.is_business_day(found):
                return found
            found += step
        way = "after" if step > timedelta() else "before"
        expected = f"a business day within {_SEARCHED} days {way} {day.isoformat()}"
        raise InvalidArgument("calendar", self.name, expected)


def _weekend(weekdays: tuple[int, ...]) -> tuple[int, ...]:
    found = tuple(sorted(set(weekdays)))
    if len(found) > 6 or any(type(day) is not int or not 0 <= day <= 6 for day in found):
        raise InvalidArgument("calendar.weekend", weekdays, "weekdays from 0 (Monday) to 6, not all of them")
    return found


def _holidays(given: Mapping[date, str]) -> Mapping[date, str]:
    if len(given) > _MOST_HOLIDAYS:
        raise InvalidArgument("calendar.holidays", f"{len(given)} of them", f"at most {_MOST_HOLIDAYS}")
    for day, label in given.items():
        if not isinstance(day, date) or isinstance(day, datetime):
            raise InvalidArgument("calendar.holidays", day, "dates")
        if not isinstance(label, str) or len(label) > _LONGEST_LABEL or not label.isprintable():
            raise InvalidArgument(
                "calendar.holidays", label, f"labels of at most {_LONGEST_LABEL} characters"
            )
    return MappingProxyType(dict(sorted(given.items())))


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


def from_dates(
    name: str,
    dates: Mapping[date, str] | Iterable[date],
    *,
    version: int = 1,
    weekend: tuple[int, ...] = (5, 6),
    tz: str = "UTC",
) -> Calendar:
    """Holidays by hand, with labels or without."""
    holidays = dates if isinstance(dates, Mapping) else dict.fromkeys(dates, "")
    return Calendar(name, version, weekend, holidays, tz)


def from_country(
    name: str,
    country: str,
    *,
    years: Iterable[int],
    subdivision: str | None = None,
    version: int = 1,
    weekend: tuple[int, ...] | None = None,
    tz: str = "UTC",
) -> Calendar:
    """Public holidays of a country or one of its parts; its own weekend, if none is given.

    They come from the release of `holidays` at hand and are then fixed: a newer release is a new version.
    """
    wanted = _checked_years(years)
    try:
        import holidays
    except ImportError:
        raise InvalidArgument(
            "calendar.country", country, "the extra: pip install 'mainspring[calendar]'"
        ) from None
    try:
        found = holidays.country_holidays(country, subdiv=subdivision, years=wanted)
    except (NotImplementedError, TypeError, AttributeError):
        place = country if subdivision is None else f"{country}, {subdivision}"
        expected = 'a country such as "DE", and a subdivision of it such as "BY"'
        raise InvalidArgument("calendar.country", place, expected) from None
    dates = {day: label[:_LONGEST_LABEL] for day, label in found.items() if day.year in wanted}
    return Calendar(name, version, tuple(found.weekend) if weekend is None else weekend, dates, tz)


def merge(name: str, *calendars: Calendar, version: int = 1, tz: str | None = None) -> Calendar:
    """A calendar whose business days are those on which all of the given ones have one."""
    zones = {each.tz for each in calendars}
    if not calendars or (tz is None and len(zones) > 1):
        raise InvalidArgument("tz", sorted(zones), "calendars of one zone, or the zone of the new one")
    holidays: dict[date, str] = {}
    for calendar in calendars:
        for day, label in calendar.holidays.items():
            holidays[day] = _both(holidays.get(day, ""), label)
    weekend = {day for each in calendars for day in each.weekend}
    return Calendar(name, version, tuple(weekend), holidays, calendars[0].tz if tz is None else tz)


def _checked_years(years: Iterable[int]) -> frozenset[int]:
    """The years, if they are years and not too many."""
    found: set[int] = set()
    for year in years:
        if type(year) is not int or not 1900 <= year <= 2200:
            raise InvalidArgument("calendar.years", year, "years from 1900 to 2200")
        found.add(year)
        if len(found) > _MOST_YEARS:
            raise InvalidArgument(
                "calendar.years", f"more than {_MOST_YEARS}", f"at most {_MOST_YEARS} years"
            )
    if not found:
        raise InvalidArgument("calendar.years", (), "at least one year")
    return frozenset(found)


def _both(first: str, second: str) -> str:
    """One label for two; the order in which calendars are merged must not show."""
    labels = {label for label in (*first.split(" / "), *second.split(" / ")) if label}
    return " / ".join(sorted(labels))[:_LONGEST_LABEL]


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
    wanted = _checked_years(years)
    if not isinstance(text, str) or len(text.encode(errors="replace")) > LARGEST:
        raise InvalidArgument("calendar.ical", text, f"text of at most {LARGEST} bytes")
    holidays: dict[date, str] = {}
    for event in _checked_events(text):
        for day, label in _dates(event, wanted):
            holidays[day] = label
            if len(holidays) > _MOST_HOLIDAYS:
                raise _wrong(event.line, "this event", f"at most {_MOST_HOLIDAYS} dates in all")
    return Calendar(name, version, weekend, holidays, tz)


def _checked_events(text: str) -> list[_Event]:
    events = [event for event in _events(text) if event.values.get("STATUS", (0, ""))[1] != "CANCELLED"]
    if len(events) > _MOST_EVENTS or sum("RRULE" in event.values for event in events) > _MOST_RULES:
        expected = f"at most {_MOST_EVENTS} events, {_MOST_RULES} with rules"
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
            if _PROPERTY_NAME.fullmatch(name):
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
            if (first + each * _ONE_DAY).year in years and first not in event.excluded:
                yield first + each * _ONE_DAY, label


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
    if not 1 <= days <= _MOST_DAYS:
        raise _wrong(line, f"{days} days", f"an event of 1 to {_MOST_DAYS} whole days")
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
    slot = datetime(min(years), 1, 1, tzinfo=UTC) - (days + 1) * _ONE_DAY
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
    return "".join(each if each.isprintable() else " " for each in plain)[:_LONGEST_LABEL].strip()


def _wrong(line: int, got: str, expected: str) -> InvalidArgument:
    return InvalidArgument(f"calendar.ical line {line}", got, expected)
