"""The text of a recurrence rule (RFC 5545, 3.3.10), read strictly."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from math import prod

from mainspring.errors import InvalidArgument

LONGEST = 1024
MOST_COUNTED = 10_000
_MOST_TIMES = 1440
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_UNTIL = re.compile(r"\d{8}T\d{6}Z?", re.ASCII)
_BYDAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,9}", re.ASCII)
# What part may hold, by its largest number; those in _SIGNED count from the end too, and have no zero.
_LIMITS = {
    "BYMONTH": 12, "BYWEEKNO": 53, "BYYEARDAY": 366, "BYMONTHDAY": 31,
    "BYHOUR": 23, "BYMINUTE": 59, "BYSECOND": 59, "BYSETPOS": 366,
}  # fmt: skip
_SIGNED = {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYSETPOS"}
_FROM_ZERO = {"BYHOUR", "BYMINUTE", "BYSECOND"}
_ORDER = (
    "FREQ", "UNTIL", "COUNT", "INTERVAL", "BYSECOND", "BYMINUTE", "BYHOUR", "BYDAY",
    "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH", "BYSETPOS", "WKST",
)  # fmt: skip


class Freq(StrEnum):
    """How long one period of a rule is."""

    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"
    HOURLY = "HOURLY"
    MINUTELY = "MINUTELY"


# One century, like the longest interval: a period beyond it is a slip, and would cost a long search.
_LONGEST_INTERVAL = {
    Freq.YEARLY: 100, Freq.MONTHLY: 1200, Freq.WEEKLY: 5217,
    Freq.DAILY: 36_525, Freq.HOURLY: 876_600, Freq.MINUTELY: 52_596_000,
}  # fmt: skip
# The table of RFC 5545 says N/A for these.
_MISPLACED = {
    "BYWEEKNO": set(Freq) - {Freq.YEARLY},
    "BYYEARDAY": {Freq.MONTHLY, Freq.WEEKLY, Freq.DAILY},
    "BYMONTHDAY": {Freq.WEEKLY},
}


@dataclass(frozen=True, slots=True)
class DateParts:
    """What a rule says about dates. Years of the same shape have the same ones."""

    freq: Freq
    wkst: int = 0
    month: tuple[int, ...] = ()
    week: tuple[int, ...] = ()
    year_day: tuple[int, ...] = ()
    month_day: tuple[int, ...] = ()
    weekday: tuple[tuple[int, int], ...] = ()
    """Pairs of weekday (Monday is 0) and which of them in its month or year; 0 for each."""


@dataclass(frozen=True, slots=True)
class RecurrenceRule:
    """A recurrence rule, taken apart. An empty part is one that was not given."""

    text: str
    dates: DateParts
    interval: int = 1
    count: int | None = None
    until: str | None = None
    hour: tuple[int, ...] = ()
    minute: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    position: tuple[int, ...] = ()

    @property
    def freq(self) -> Freq:
        return self.dates.freq

    def filled(self, start: datetime) -> RecurrenceRule:
        """With what RFC 5545 takes from the start where the rule is silent."""
        fine = self.freq in (Freq.HOURLY, Freq.MINUTELY)
        return replace(
            self,
            dates=_filled_dates(self.dates, start),
            hour=self.hour or (() if fine else (start.hour,)),
            minute=self.minute or (() if self.freq is Freq.MINUTELY else (start.minute,)),
            second=self.second or (start.second,),
        )


def parse(text: str) -> RecurrenceRule:
    """Read a rule; nothing is guessed, and what dateutil would take and then misread is refused."""
    parts = _parts(text)
    freq = _freq(text, parts)
    for name, frequencies in _MISPLACED.items():
        if name in parts and freq in frequencies:
            raise _refused(text, f"no {name} with FREQ={freq}")
    numbers = {name: _numbers(text, name, parts[name]) for name in _LIMITS if name in parts}
    dates = DateParts(
        freq,
        _wkst(text, parts),
        numbers.get("BYMONTH", ()),
        numbers.get("BYWEEKNO", ()),
        numbers.get("BYYEARDAY", ()),
        numbers.get("BYMONTHDAY", ()),
        _weekdays(text, parts["BYDAY"], freq, "BYWEEKNO" in parts) if "BYDAY" in parts else (),
    )
    rule = RecurrenceRule(
        _canonical(parts, numbers),
        dates,
        _whole(text, parts, "INTERVAL", _LONGEST_INTERVAL[freq]) or 1,
        _whole(text, parts, "COUNT", MOST_COUNTED),
        _until(text, parts),
        numbers.get("BYHOUR", ()),
        numbers.get("BYMINUTE", ()),
        numbers.get("BYSECOND", ()),
        numbers.get("BYSETPOS", ()),
    )
    _check_whole(text, rule, parts)
    return rule


def _filled_dates(dates: DateParts, start: datetime) -> DateParts:
    if dates.week or dates.year_day or dates.month_day or dates.weekday:
        return dates
    match dates.freq:
        case Freq.YEARLY:
            return replace(dates, month=dates.month or (start.month,), month_day=(start.day,))
        case Freq.MONTHLY:
            return replace(dates, month_day=(start.day,))
        case Freq.WEEKLY:
            return replace(dates, weekday=((start.weekday(), 0),))
        case _:
            return dates


def _parts(text: str) -> dict[str, str]:
    if not isinstance(text, str) or len(text) > LONGEST:
        raise _refused(text, f"a rule of at most {LONGEST} characters")
    if not text.isascii() or not text.isprintable():
        raise _refused(text, "one line of plain ASCII")
    parts: dict[str, str] = {}
    for part in text.strip().upper().removeprefix("RRULE:").split(";"):
        name, equals, value = part.partition("=")
        if name not in _ORDER or not equals or not value:
            raise _refused(text, f"parts such as FREQ=DAILY, not {part!r}")
        if name in parts:
            raise _refused(text, f"{name} once")
        parts[name] = value
    return parts


def _freq(text: str, parts: dict[str, str]) -> Freq:
    try:
        return Freq(parts["FREQ"])
    except (KeyError, ValueError):
        raise _refused(text, f"FREQ, one of {', '.join(Freq)}") from None


def _wkst(text: str, parts: dict[str, str]) -> int:
    value = parts.get("WKST", "MO")
    if value not in _WEEKDAYS:
        raise _refused(text, f"WKST, one of {', '.join(_WEEKDAYS)}")
    return _WEEKDAYS.index(value)


def _whole(text: str, parts: dict[str, str], name: str, most: int) -> int | None:
    if name not in parts:
        return None
    value = parts[name]
    if not value.isdigit() or not _NUMBER.fullmatch(value) or not 1 <= int(value) <= most:
        raise _refused(text, f"{name} from 1 to {most}")
    return int(value)


def _numbers(text: str, name: str, value: str) -> tuple[int, ...]:
    most, least = _LIMITS[name], 0 if name in _FROM_ZERO else 1
    found = set()
    for each in value.split(","):
        number = int(each) if _NUMBER.fullmatch(each) else -1_000
        size = abs(number) if name in _SIGNED else number
        if not least <= size <= most:
            sign = " or counted from the end with a minus" if name in _SIGNED else ""
            raise _refused(text, f"{name} from {least} to {most}{sign}")
        found.add(number)
    return tuple(sorted(found))


def _weekdays(text: str, value: str, freq: Freq, by_week: bool) -> tuple[tuple[int, int], ...]:
    found = set()
    for each in value.split(","):
        match = _BYDAY.fullmatch(each)
        if not match or (match[1] and not 1 <= abs(int(match[1])) <= (5 if freq is Freq.MONTHLY else 53)):
            raise _refused(text, "BYDAY such as MO, 2TU or -1FR")
        found.add((_WEEKDAYS.index(match[2]), int(match[1] or 0)))
    counted = {bool(which) for _, which in found}
    if True in counted and (freq not in (Freq.MONTHLY, Freq.YEARLY) or by_week):
        raise _refused(text, "BYDAY with numbers only in MONTHLY and in YEARLY without BYWEEKNO")
    if len(counted) > 1:
        # dateutil would want both to hold at once, RFC 5545 means either.
        raise _refused(text, "BYDAY with a number before every day or before none")
    return tuple(sorted(found))


def _until(text: str, parts: dict[str, str]) -> str | None:
    value = parts.get("UNTIL")
    if value is not None:
        try:
            if not _UNTIL.fullmatch(value):
                raise ValueError(value)
            until_wall(value)
        except ValueError:
            raise _refused(text, "UNTIL with date and time, such as 20261231T235959Z") from None
    return value


def until_wall(until: str) -> datetime:
    """The date and time an UNTIL names; in UTC if it ends in Z, else on the wall clock of the rule."""
    return datetime.strptime(until.removesuffix("Z"), "%Y%m%dT%H%M%S")  # noqa: DTZ007  a wall time


def _check_whole(text: str, rule: RecurrenceRule, parts: dict[str, str]) -> None:
    if rule.count is not None and rule.until is not None:
        raise _refused(text, "COUNT or UNTIL, not both")
    if rule.position and not any(name.startswith("BY") and name != "BYSETPOS" for name in parts):
        raise _refused(text, "another BY part for BYSETPOS to choose from")
    clock = {Freq.HOURLY: (rule.minute, rule.second), Freq.MINUTELY: (rule.second,)}
    times = clock.get(rule.freq, (rule.hour, rule.minute, rule.second))
    if prod(max(len(each), 1) for each in times) > _MOST_TIMES:
        raise _refused(text, f"at most {_MOST_TIMES} times of the day")


def _canonical(parts: dict[str, str], numbers: dict[str, tuple[int, ...]]) -> str:
    """Equal rules in equal text: order, case, signs and defaults do not count."""
    written = dict(parts) | {name: ",".join(map(str, values)) for name, values in numbers.items()}
    if "BYDAY" in parts:
        written["BYDAY"] = ",".join(sorted({each.removeprefix("+") for each in parts["BYDAY"].split(",")}))
    for name in ("INTERVAL", "COUNT"):
        if name in parts:
            written[name] = str(int(parts[name]))
    defaults = {"INTERVAL": "1", "WKST": "MO"}
    return ";".join(
        f"{name}={written[name]}"
        for name in _ORDER
        if name in written and written[name] != defaults.get(name)
    )


def _refused(text: object, expected: str) -> InvalidArgument:
    return InvalidArgument("rrule", text, f"{expected} (RFC 5545)")
