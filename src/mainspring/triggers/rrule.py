"""Recurrence rules as calendars write them (RFC 5545): the next instant of a rule."""

from __future__ import annotations

import calendar
import itertools
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from mainspring.errors import InvalidArgument
from mainspring.triggers.intervals import MOST_INSTANTS
from mainspring.triggers.rrule_text import DateParts, Freq, RecurrenceRule, parse, until_wall
from mainspring.triggers.zones import LocalClock, zone

_EARLIEST, _LATEST = 1900, 2200
_DAY = timedelta(days=1)
_PATIENCE = 2000
"""After so many periods in a row that come to nothing, a rule counts as ended."""
_PATIENCE_FOR_COUNT = 5000
# Every shape of a year comes back within 40 years, even around 2100.
_ALL_SHAPES = 41
_CYCLE = 400
_LAST_YEAR = 9998
_END = date(_LAST_YEAR, 12, 31)
_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class RRule:
    """Slots where a recurrence rule, read on the wall clock of a zone, names an instance.

    A skipped wall time is read with the offset before the gap, a repeated one is the first. The
    start counts only if the rule names it. Dates and times without a zone are those of `tz`.
    """

    rule: str
    dtstart: datetime
    tz: str = "UTC"
    exdates: tuple[datetime, ...] = ()
    rdates: tuple[datetime, ...] = ()
    _clock: LocalClock = field(init=False, repr=False, compare=False)
    _walk: _Walk = field(init=False, repr=False, compare=False)
    _last: datetime | None = field(init=False, repr=False, compare=False)
    _until: datetime | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parsed = parse(self.rule)
        clock = LocalClock(zone(self.tz))
        start = _start(self.dtstart, clock)
        walk = _Walk(parsed.filled(start), start)
        facts = {
            "rule": parsed.text,
            "dtstart": start,
            "exdates": _instants("exdates", self.exdates, clock),
            "rdates": _instants("rdates", self.rdates, clock),
            "_clock": clock,
            "_walk": walk,
            "_last": _last_counted(parsed, walk, start),
            "_until": _until(parsed, clock),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, value)
        earliest = min((clock.reading(start), *self.rdates)) - _DAY
        if self._named_after(earliest) is None or self.next_after(earliest) is None:
            raise InvalidArgument("rrule", self.rule, "a rule that names at least one instant")

    def next_after(self, moment: datetime) -> datetime | None:
        try:
            found = (self._instance_after(moment), self._extra_after(moment))
        except OverflowError:
            return None
        return min((slot for slot in found if slot is not None), default=None)

    def shifted(self, slot: datetime) -> bool:
        """Whether a wall time that did not exist has come to lie on this slot."""
        wall = self._clock.wall(slot) - self._clock.jump_before(slot)
        skipped = bool(self._clock.gap_around(wall)) and self._clock.reading(wall) == slot
        return skipped and next(iter(self._walls(wall)), None) == wall

    def encode(self) -> str:
        facts: dict[str, object] = {
            "rrule": self.rule,
            "dtstart": self.dtstart.isoformat(),
            "tz": self.tz,
        }
        for name in ("exdates", "rdates"):
            if moments := getattr(self, name):
                facts[name] = [moment.isoformat() for moment in moments]
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def _instance_after(self, moment: datetime) -> datetime | None:
        slot = self._named_after(moment)
        while slot is not None and slot in self.exdates:
            slot = self._named_after(slot)
        return slot

    def _extra_after(self, moment: datetime) -> datetime | None:
        later = self.rdates[bisect_right(self.rdates, moment) :]
        return next((slot for slot in later if slot not in self.exdates), None)

    def _named_after(self, moment: datetime) -> datetime | None:
        """The first instance of the rule itself.

        Around a gap the order of instants is not that of wall times: 2:45, which the gap skips,
        comes after 3:00. So the search starts early by the gap behind us and looks on over the one ahead.
        """
        since = self._clock.wall(moment) - self._clock.jump_before(moment)
        found: datetime | None = None
        look_until: datetime | None = None
        for wall in self._walls(since):
            if look_until is not None and wall > look_until:
                break
            instant = self._clock.reading(wall)
            if instant <= moment:
                continue
            found = instant if found is None else min(found, instant)
            look_until = look_until or wall + self._clock.gap_around(wall)
            if wall >= look_until:
                break
        return None if found and self._until and found > self._until else found

    def _walls(self, since: datetime) -> Iterable[datetime]:
        in_vain = 0
        for wall in self._walk.walls(since):
            in_vain = in_vain + 1 if wall is None else 0
            if in_vain > _PATIENCE or (wall and self._last and wall > self._last):
                return
            if wall is not None:
                yield wall


def _start(dtstart: datetime, clock: LocalClock) -> datetime:
    """The start as a wall time. What is below a second no rule can name."""
    if not isinstance(dtstart, datetime) or not _EARLIEST <= dtstart.year <= _LATEST:
        raise InvalidArgument("dtstart", dtstart, f"a datetime from {_EARLIEST} to {_LATEST}")
    wall = dtstart if dtstart.tzinfo is None else clock.wall(dtstart)
    return wall.replace(microsecond=0, fold=0)


def _instants(name: str, moments: Iterable[datetime], clock: LocalClock) -> tuple[datetime, ...]:
    given = tuple(moments)
    if len(given) > MOST_INSTANTS:
        raise InvalidArgument(name, f"{len(given)} of them", f"at most {MOST_INSTANTS}")
    if not all(isinstance(each, datetime) for each in given):
        raise InvalidArgument(name, given, "datetimes")
    aware = (clock.reading(each) if each.tzinfo is None else each.astimezone(UTC) for each in given)
    return tuple(sorted(set(aware)))


def _last_counted(rule: RecurrenceRule, walk: _Walk, start: datetime) -> datetime | None:
    """The wall time COUNT ends with. Found once, so that no later search has to count."""
    if rule.count is None:
        return None
    counted = in_vain = 0
    last = start
    for wall in walk.walls(start):
        if wall is None:
            in_vain += 1
            if in_vain > _PATIENCE_FOR_COUNT:
                raise InvalidArgument("rrule", rule.text, "a COUNT that is reached sooner")
            continue
        counted, last = counted + 1, wall
        if counted == rule.count:
            break
    return last


def _until(rule: RecurrenceRule, clock: LocalClock) -> datetime | None:
    if rule.until is None:
        return None
    wall = until_wall(rule.until)
    if rule.until.endswith("Z"):
        return wall.replace(tzinfo=UTC)
    try:
        return clock.reading(wall)
    except OverflowError:
        raise InvalidArgument("rrule", rule.text, "an UNTIL before the end of time") from None


class _Walk:
    """The wall times that a rule with all its parts names, from any moment on. It does not walk there from
    the start of the rule: dateutil says which dates of a year fit, and is asked once for each shape that a
    year can have; the places of the periods, and the time of day, are arithmetic."""

    __slots__ = ("_allowed", "_first", "_rule", "_start", "_times", "_unit")

    def __init__(self, rule: RecurrenceRule, start: datetime) -> None:
        self._rule = rule
        self._start = start
        if rule.freq in (Freq.HOURLY, Freq.MINUTELY):
            hourly = rule.freq is Freq.HOURLY
            self._unit = rule.interval * (60 if hourly else 1)
            self._first = _minute(start.replace(minute=0) if hourly else start)
            minutes = (0,) if hourly else rule.minute or range(60)
            self._allowed = frozenset(h * 60 + m for h in rule.hour or range(24) for m in minutes)
            within = _times((0,), rule.minute if hourly else (0,), rule.second)
            self._times = _chosen(within, rule.position)
        else:
            self._unit = rule.interval
            self._first = self._index(start.date())
            self._allowed = frozenset()
            self._times = _times(rule.hour, rule.minute, rule.second)

    def walls(self, since: datetime) -> Iterator[datetime | None]:
        """Wall times from `since` on, in order; None for each stretch that came to nothing.

        With the Nones a caller can count how long it has searched in vain.
        """
        since = max(since, self._start)
        by_clock = self._rule.freq in (Freq.HOURLY, Freq.MINUTELY)
        found = self._by_minutes(since) if by_clock else self._by_periods(since)
        return (wall for wall in found if wall is None or wall >= since)

    def _by_periods(self, since: datetime) -> Iterator[datetime | None]:
        number = self._aligned(self._index(since.date()))
        end = self._index(_END)
        while number <= end:
            first, last = self._span(number)
            day = _date_from(self._rule.dates, first)
            if day is None:
                return
            if day > last:
                number = self._aligned(self._index(day))
                yield None
                continue
            yield from self._of_period(day, last, since)
            number += self._unit

    def _of_period(self, first: date, last: date, since: datetime) -> Iterator[datetime | None]:
        positions, times = self._rule.position, self._times
        if not positions:
            # Dates behind us are passed over: a year can hold half a million times.
            first = max(first, since.date())
        stretches = _stretches(self._rule.dates, first, last)
        size = sum(len(days) for _, days in stretches) * len(times)
        places = _places(positions, size) if positions else range(size)
        if not places:
            yield None
            return
        dates = [new_year + days for new_year, stretch in stretches for days in stretch]
        for place in places:
            yield datetime.fromordinal(dates[place // len(times)]) + times[place % len(times)]

    def _by_minutes(self, since: datetime) -> Iterator[datetime | None]:
        since = since.replace(minute=0) if self._rule.freq is Freq.HOURLY else since
        tick = self._aligned(_minute(since))
        while self._times:
            today = date.fromordinal(min(tick // _MINUTES, _END.toordinal() + 1))
            day = _date_from(self._rule.dates, today)
            if day is None:
                return
            if day > today:
                tick = self._aligned(day.toordinal() * _MINUTES)
            tomorrow = (day.toordinal() + 1) * _MINUTES
            minutes = (each % _MINUTES for each in range(tick, tomorrow, self._unit))
            found = None
            for found in filter(self._allowed.__contains__, minutes):
                start = datetime.fromordinal(day.toordinal()) + timedelta(minutes=found)
                yield from (start + time for time in self._times)
            if found is None:
                yield None
            tick = self._aligned(max(tick, tomorrow))

    def _aligned(self, number: int) -> int:
        """The first period of the rule at or after this one."""
        return number + (self._first - number) % self._unit

    def _index(self, day: date) -> int:
        match self._rule.freq:
            case Freq.YEARLY:
                return day.year
            case Freq.MONTHLY:
                return day.year * 12 + day.month - 1
            case Freq.WEEKLY:
                return (day.toordinal() - 1 - self._rule.dates.wkst) // 7
            case _:
                return day.toordinal()

    def _span(self, number: int) -> tuple[date, date]:
        match self._rule.freq:
            case Freq.YEARLY:
                return date(number, 1, 1), date(number, 12, 31)
            case Freq.MONTHLY:
                year, month = number // 12, number % 12 + 1
                return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])
            case Freq.WEEKLY:
                first = date.fromordinal(number * 7 + 1 + self._rule.dates.wkst)
                return first, first + 6 * _DAY
            case _:
                return date.fromordinal(number), date.fromordinal(number)


def _date_from(parts: DateParts, day: date) -> date | None:
    """The first date at or after `day` that fits; None when no year has one."""
    low = day.timetuple().tm_yday - 1
    for year in range(day.year, min(day.year + _ALL_SHAPES, _LAST_YEAR + 1)):
        fitting = _fitting(parts, _alike(year % _CYCLE + 2000))
        place = bisect_left(fitting, low)
        if place < len(fitting):
            return date(year, 1, 1) + fitting[place] * _DAY
        low = 0
    return None


def _stretches(parts: DateParts, first: date, last: date) -> list[tuple[int, tuple[int, ...]]]:
    """What fits from `first` to `last`: for each year the ordinal of New Year, and days after it."""
    found = []
    for year in range(first.year, last.year + 1):
        new_year, fitting = date(year, 1, 1), _fitting(parts, _alike(year % _CYCLE + 2000))
        low = bisect_left(fitting, (first - new_year).days)
        high = bisect_left(fitting, (last - new_year).days + 1)
        found.append((new_year.toordinal(), fitting[low:high]))
    return found


@lru_cache(maxsize=4096)
def _fitting(parts: DateParts, year: int) -> tuple[int, ...]:
    """The dates of a year that fit, as days after New Year."""
    try:
        from dateutil import rrule
    except ImportError:
        raise InvalidArgument(
            "rrule", "no dateutil", "the extra: pip install 'mainspring[calendar]'"
        ) from None
    months = parts.month or (range(1, 13) if parts.freq is Freq.MONTHLY else None)
    has_days = parts.week or parts.year_day or parts.month_day or parts.weekday
    weekdays = parts.weekday if has_days else [(day, 0) for day in range(7)]
    # With this interval there is no second period: dateutil would search an empty year's successors
    # up to 9999. In a year with months it counts weekdays by the month, so MONTHLY is a year as well.
    found = rrule.rrule(
        rrule.YEARLY,
        dtstart=datetime(year, 1, 1),  # noqa: DTZ001  a wall time has no zone
        interval=_LAST_YEAR,
        wkst=parts.wkst,
        bymonth=months,
        byweekno=parts.week or None,
        byyearday=parts.year_day or None,
        bymonthday=parts.month_day or None,
        byweekday=[rrule.weekday(day, which or None) for day, which in weekdays] or None,
        byhour=0,
        byminute=0,
        bysecond=0,
    )
    return tuple(wall.timetuple().tm_yday - 1 for wall in found)


@lru_cache(maxsize=400)
def _alike(year: int) -> int:
    """The first year since 2000 with the same dates on the same days and in the same weeks."""

    def shape(year: int) -> tuple[int, bool, bool]:
        # Its first days may belong to the last week of the year before.
        return date(year, 1, 1).weekday(), calendar.isleap(year), calendar.isleap(year - 1)

    return next(each for each in itertools.count(2000) if shape(each) == shape(year))


def _minute(wall: datetime) -> int:
    return wall.toordinal() * _MINUTES + wall.hour * 60 + wall.minute


def _times(hours: Sequence[int], minutes: Sequence[int], seconds: Sequence[int]) -> tuple[timedelta, ...]:
    each = itertools.product(hours, minutes, seconds)
    return tuple(timedelta(hours=hour, minutes=minute, seconds=second) for hour, minute, second in each)


def _chosen(times: tuple[timedelta, ...], positions: tuple[int, ...]) -> tuple[timedelta, ...]:
    return tuple(times[place] for place in _places(positions, len(times))) if positions else times


def _places(positions: Sequence[int], size: int) -> list[int]:
    """Where BYSETPOS points in a set of this size: from 1 at its start, from -1 at its end."""
    places = {position - 1 if position > 0 else size + position for position in positions}
    return sorted(place for place in places if 0 <= place < size)
