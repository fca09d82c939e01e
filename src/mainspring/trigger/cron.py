"""Cron expressions: five fields, or six with the seconds first, in one time zone."""

from __future__ import annotations

import copy
import json
from calendar import SATURDAY, SUNDAY, monthrange
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TypeVar

from cronsim import CronSim, CronSimError

from mainspring.errors import InvalidArgument
from mainspring.trigger.cron_fields import read
from mainspring.trigger.walls import Fold, Gap, Walls
from mainspring.trigger.zones import zone

_ANY_WALL = datetime(2024, 1, 1)  # noqa: DTZ001  a wall time has no zone
# Every kind of year there is: common or leap, by the weekday it begins with.
_YEARS = (2001, 2002, 2003, 2005, 2006, 2009, 2010, 2000, 2004, 2008, 2012, 2016, 2020, 2024)
_Policy = TypeVar("_Policy", Gap, Fold)


@dataclass(frozen=True, slots=True)
class Cron:
    """Slots where the wall clock of a zone matches an expression.

    An hour field that starts with `*` means every real instant that shows a matching wall time. All
    others follow `gap` and `fold` on the nights the clocks change. `key` is what H is hashed from, the
    schedule's name; the expression is kept with every H resolved.
    """

    expression: str
    tz: str = "UTC"
    gap: str = Gap.SHIFT.value
    fold: str = Fold.FIRST.value
    key: InitVar[str | None] = None
    _search: CronSim = field(init=False, repr=False, compare=False)
    _walls: Walls | None = field(init=False, repr=False, compare=False)

    def __post_init__(self, key: str | None) -> None:
        reading = read(self.expression, key)
        gap, fold = _policy("gap", self.gap, Gap), _policy("fold", self.fold, Fold)
        rules = (Gap.SKIP, Fold.BOTH) if reading.starred_hour else (gap, fold)
        found, search = zone(self.tz), _search(reading.plain, reading.nearest, reading.nearest_only)
        if search is None:
            expected = f"a date that exists in the day-of-month field at column {reading.day_column}"
            raise InvalidArgument("cron", self.expression, expected)
        object.__setattr__(self, "expression", reading.text)
        object.__setattr__(self, "gap", gap.value)
        object.__setattr__(self, "fold", fold.value)
        object.__setattr__(self, "_search", search)
        object.__setattr__(self, "_walls", None if self.tz == "UTC" else Walls(found, *rules))

    def next_after(self, moment: datetime) -> datetime | None:
        try:
            if self._walls is None:
                return self._wall_after(moment.astimezone(UTC).replace(tzinfo=None)).replace(tzinfo=UTC)
            return self._walls.after(moment, self._wall_after)
        except (StopIteration, OverflowError):
            return None

    def shifted(self, slot: datetime) -> bool:
        """Whether a wall time that did not exist has come to lie on this slot."""
        return self._walls is not None and self._walls.shifted(slot, self._wall_after)

    def encode(self) -> str:
        facts = {"cron": self.expression, "tz": self.tz}
        if self.gap != Gap.SHIFT:
            facts["gap"] = self.gap
        if self.fold != Fold.FIRST:
            facts["fold"] = self.fold
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def _wall_after(self, wall: datetime) -> datetime:
        """The next wall time that matches. cronsim sees no zone, so this depends on `wall` alone."""
        search = copy.copy(self._search)
        search.dt = wall.replace(microsecond=0)
        return next(search)


class _Search(CronSim):
    """cronsim, and the weekday nearest to a day of the month."""

    nearest: frozenset[int] = frozenset()

    def match_dom(self, d: date) -> bool:
        """Whether the day of the month matches."""
        return super().match_dom(d) or any(_nearest_weekday(d, day) == d.day for day in self.nearest)


def _nearest_weekday(month: date, day: int) -> int | None:
    """Monday to Friday nearest to that day without leaving the month; None if the month has no such day."""
    _, last = monthrange(month.year, month.month)
    if day > last:
        return None
    weekday = month.replace(day=day).weekday()
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < last else day - 2
    return day


@lru_cache(maxsize=4096)
def _search(plain: str, nearest: frozenset[int], nearest_only: bool) -> CronSim | None:
    """None when no date ever matches: cronsim itself would look for it through 50 years."""
    try:
        search = _Search(plain, _ANY_WALL)
    except CronSimError:  # the fields are known to be good, and the only other thing it looks at is this
        return None
    search.nearest = nearest
    if nearest_only:
        search.days = set()
    return search if _has_a_date(search) else None


def _has_a_date(search: CronSim) -> bool:
    starts = (date(year, month, 1) for year in _YEARS for month in search.months)
    months = ((start, monthrange(start.year, start.month)[1]) for start in starts)
    return any(
        search.match_day(start.replace(day=day)) for start, last in months for day in range(1, last + 1)
    )


def _policy(name: str, value: str, policies: type[_Policy]) -> _Policy:
    try:
        return policies(value)
    except ValueError:
        raise InvalidArgument(name, value, f"one of {', '.join(policies)}") from None
