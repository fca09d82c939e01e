"""A second opinion on cron: look at every minute of a stretch of time, one after the other.

Slow, obvious, and without a line in common with what it checks: neither cronsim nor PEP 495's fold.
Offsets must be whole minutes. A stretch must begin and end well outside of what is asked about.
"""

from __future__ import annotations

import calendar
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


class Stretch:
    """The wall clock of a zone, written down at every step."""

    def __init__(self, zone: ZoneInfo, start: datetime, steps: int, step: timedelta = MINUTE) -> None:
        self.start, self.step = start, step
        self.instants = [start + number * step for number in range(steps)]
        self.walls = [instant.astimezone(zone).replace(tzinfo=None, fold=0) for instant in self.instants]
        self.shown = defaultdict(list)
        for instant, wall in zip(self.instants, self.walls, strict=True):
            self.shown[wall].append(instant)
        pairs = zip(self.walls, self.walls[1:], self.instants[1:], strict=False)
        jumps = [(instant, before + step, wall) for before, wall, instant in pairs if wall - before != step]
        self.gaps = [jump for jump in jumps if jump[1] < jump[2]]
        self.changes = [instant for instant, _, _ in jumps]

    def fires(self, expression: str, gap: str = "shift", fold: str = "first") -> list[datetime]:
        """Every instant at which the expression fires, in order."""
        matches = matcher(expression)
        matching = [wall for wall in self.shown if matches(wall)]
        if expression.split()[-4].startswith("*"):
            return sorted(instant for wall in matching for instant in self.shown[wall])
        chosen = {"first": slice(0, 1), "second": slice(-1, None), "both": slice(None)}[fold]
        found = {instant for wall in matching for instant in self.shown[wall][chosen]}
        if gap == "shift":
            found |= {end for end, low, high in self.gaps if self._any(matches, low, high)}
        return sorted(found)

    def _any(self, matches, low: datetime, high: datetime) -> bool:
        return any(matches(low + number * self.step) for number in range((high - low) // self.step))


@cache
def matcher(expression: str):
    """A function that says whether a wall time matches."""
    words = expression.upper().split()
    second, minute, hour, day, month, weekday = words if len(words) == 6 else ["0", *words]
    seconds, minutes, hours = numbers(second, 0, 59), numbers(minute, 0, 59), numbers(hour, 0, 23)
    months = numbers(month, 1, 12, MONTHS)
    either = not day.startswith("*") and not weekday.startswith("*")

    @cache
    def day_matches(date) -> bool:
        by_day = any(day_term(term, date) for term in day.split(","))
        by_weekday = any(weekday_term(term, date) for term in weekday.split(","))
        return date.month in months and ((by_day or by_weekday) if either else (by_day and by_weekday))

    return lambda wall: (
        wall.minute in minutes and wall.hour in hours and wall.second in seconds and day_matches(wall.date())
    )


def numbers(field: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    found: set[int] = set()
    for term in field.split(","):
        base, _, step = term.partition("/")
        ends = [low, high] if base == "*" else [number(end, low, names) for end in base.split("-")]
        values, value = [ends[0]], ends[0]
        while value != ends[-1]:
            value = low if value == high else value + 1
            values.append(value)
        found.update(values[:: int(step or 1)])
    return found


def number(text: str, low: int, names: list[str] | None) -> int:
    return names.index(text) + low if names and text in names else int(text)


def day_term(term: str, date) -> bool:
    last = calendar.monthrange(date.year, date.month)[1]
    working = [day for day in range(1, last + 1) if date.replace(day=day).isoweekday() < 6]
    if term == "L":
        return date.day == last
    if term == "LW":
        return date.day == working[-1]
    if term.endswith("W"):
        wanted = int(term[:-1])
        return wanted <= last and date.day == min(working, key=lambda day: abs(day - wanted))
    return date.day in numbers(term, 1, 31)


def weekday_term(term: str, date) -> bool:
    today = date.isoweekday() % 7
    if term.endswith("L"):
        return number(term[:-1], 0, WEEKDAYS) % 7 == today and (date + timedelta(7)).month != date.month
    if "#" in term:
        name, nth = term.split("#")
        return number(name, 0, WEEKDAYS) % 7 == today and (date.day - 1) // 7 + 1 == int(nth)
    return today in numbers(term.replace("7", "0") if term.startswith("7") else term, 0, 6, WEEKDAYS)


def transitions(zone: ZoneInfo, first: int, last: int) -> list[datetime]:
    """Instants within a day after which the zone's offset differs."""
    days = [datetime(first, 1, 1, tzinfo=UTC) + timedelta(number) for number in range((last - first) * 365)]
    offsets = [day.astimezone(zone).utcoffset() for day in days]
    return [day for day, old, new in zip(days, offsets, offsets[1:], strict=False) if old != new]
