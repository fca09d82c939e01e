"""Which dates are business days."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from types import MappingProxyType

from mainspring.errors import InvalidArgument
from mainspring.trigger.zones import zone

MOST_HOLIDAYS = 10_000
LONGEST_LABEL = 200
_SEARCHED = 366
_DAY = timedelta(days=1)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


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
    if len(given) > MOST_HOLIDAYS:
        raise InvalidArgument("calendar.holidays", f"{len(given)} of them", f"at most {MOST_HOLIDAYS}")
    for day, label in given.items():
        if not isinstance(day, date) or isinstance(day, datetime):
            raise InvalidArgument("calendar.holidays", day, "dates")
        if not isinstance(label, str) or len(label) > LONGEST_LABEL or not label.isprintable():
            raise InvalidArgument("calendar.holidays", label, f"labels of at most {LONGEST_LABEL} characters")
    return MappingProxyType(dict(sorted(given.items())))
