"""The load map: the jobs of each hour of the coming days, the busiest minutes, and the nights with a clock
change in the time zones of triggers.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from msgspec.structs import replace

from mainspring.admin.schedules.triggers import readable
from mainspring.admin.simulation.load import MINUTE, Hour, Peak, load, spread_in
from mainspring.admin.simulation.simulate import Horizon, Planned
from mainspring.model.value import Value
from mainspring.triggers.codec import Calendars
from mainspring.triggers.rolled import Rolled
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import zone

LEVELS = 5
"""Shades of a cell that is not empty."""
PEAKS = 6
NAMED = 4
"""The most schedules of a busy minute that are named."""
_HOUR = timedelta(hours=1)
WINDOW = timedelta(minutes=15)
_STEP = timedelta(days=1)
_EXACT = timedelta(seconds=1)
_NAMED = 3


class Night(Value, frozen=True, kw_only=True):
    """One instant at which the clocks of some zones change."""

    at: datetime
    zones: tuple[str, ...]
    was: datetime
    """The local time of the first zone before the change; `now` is the local time after it."""
    now: datetime

    @property
    def forward(self) -> bool:
        """Whether local times are skipped; otherwise they come twice."""
        return self.now.replace(tzinfo=None) > self.was.replace(tzinfo=None)

    @property
    def sentence(self) -> str:
        """In words."""
        named = ", ".join(self.zones[:_NAMED])
        more = len(self.zones) - _NAMED
        who = named + (f" and {more} more" if more > 0 else "")
        what = "are skipped" if self.forward else "come twice"
        first, last = (self.was, self.now) if self.forward else (self.now, self.was)
        return (
            f"{who}: clocks change at {self.was:%H:%M}, and times from {first:%H:%M} to {last:%H:%M} {what}"
        )


class Cell(Value, frozen=True, kw_only=True):
    """One hour of one day, in UTC."""

    at: datetime
    jobs: int
    busiest: int
    level: int
    """0 when it is empty, else up to LEVELS."""
    nights: tuple[Night, ...] = ()
    past: bool = False
    """True if the hour is over."""

    @property
    def sentence(self) -> str:
        """The text of the cell, for pointers and for screen readers."""
        jobs = f"{self.jobs:,} job{'' if self.jobs == 1 else 's'}"
        most = f", at most {self.busiest:,} in a minute" if self.jobs else ""
        odd = "".join(f"; {each.sentence}" for each in self.nights)
        return f"{self.at:%a %d %b %H:00}Z: {jobs}{most}{odd}"


class HeatDay(Value, frozen=True, kw_only=True):
    """One row of the map."""

    day: date
    jobs: int
    cells: tuple[Cell, ...]


class BurstPart(Value, frozen=True, kw_only=True):
    """What one schedule adds to a busy minute."""

    name: str
    jobs: int


class BurstView(Value, frozen=True, kw_only=True):
    """A busy minute, and its schedules."""

    minute: datetime
    jobs: int
    share: int
    """Percent of the busiest minute."""
    first: tuple[BurstPart, ...]
    more: int


class HeatMap(Value, frozen=True, kw_only=True):
    """The whole map."""

    start: datetime
    days: tuple[HeatDay, ...]
    total: int
    most: int
    """Jobs of the busiest hour."""
    steps: tuple[int, ...]
    """The most jobs of an hour of each level."""
    bursts: tuple[BurstView, ...]
    nights: tuple[Night, ...]
    schedules: int
    unread: int
    """Schedules whose trigger this version cannot read: the map leaves them out."""
    window: timedelta
    peak: int
    spread_peak: int
    """The jobs of the busiest minute, if every schedule had its own offset in the window."""


def heat_map(
    schedules: Sequence[Planned],
    now: datetime,
    days: int,
    calendars: Calendars | None = None,
    *,
    window: timedelta = WINDOW,
) -> HeatMap:
    """The map of so many days in UTC. The current day is counted as a whole."""
    known = {each: readable(each, calendars or {}) for each in {each.trigger for each in schedules}}
    shown = [each for each in schedules if known[each.trigger] is not None]
    # Whole days are counted at once, so past hours are in the map, and are marked.
    start = now.replace(hour=0, minute=0, second=0, microsecond=0)
    horizon = Horizon(start=start, end=start + timedelta(days=days))
    busy = load(shown, horizon, calendars, peaks=PEAKS)
    # Offsets are rounded to minutes, so that thousands of schedules are counted together.
    places = {each.name: spread_in(each, window) // MINUTE * MINUTE for each in shown}
    spread = load(shown, horizon, calendars, offset=lambda each: places[each.name], peaks=1, name=False)
    zones = {tz for trigger in known.values() if trigger is not None for tz in zones_of(trigger)}
    odd = nights(zones, start, horizon.end)
    most = max((each.jobs for each in busy.hours), default=0)
    shades = steps(most)
    cells = _cells(busy.hours, odd, shades)
    return HeatMap(
        start=start,
        days=tuple(_day(start + timedelta(days=number), cells, now) for number in range(days)),
        total=busy.total,
        most=most,
        steps=shades,
        bursts=tuple(_burst(each, busy.peaks[0].jobs) for each in busy.peaks),
        nights=odd,
        schedules=len(shown),
        unread=len(schedules) - len(shown),
        window=window,
        peak=busy.peaks[0].jobs if busy.peaks else 0,
        spread_peak=spread.peaks[0].jobs if spread.peaks else 0,
    )


def steps(most: int) -> tuple[int, ...]:
    """The most jobs of an hour for each shade, on a logarithmic scale, so that one burst does not make all
    other hours look pale. There are fewer shades if there are few jobs."""
    found = {max(1, round(math.expm1(shade / LEVELS * math.log1p(most)))) for shade in range(1, LEVELS + 1)}
    return tuple(sorted(found)) if most else ()


def level(jobs: int, shades: Sequence[int]) -> int:
    """The shade of an hour with so many jobs; the busiest hour has the darkest."""
    return 0 if jobs <= 0 else LEVELS - len(shades) + 1 + bisect_left(shades, jobs)


def zones_of(trigger: Trigger) -> set[str]:
    """The time zones of a trigger."""
    match trigger:
        case Bounded():
            return zones_of(trigger.trigger)
        case Rolled():
            return {trigger.tz} | zones_of(trigger.trigger)
        case _:
            tz = getattr(trigger, "tz", None)
            return set() if tz is None else {tz}


def nights(zones: Iterable[str], start: datetime, end: datetime) -> tuple[Night, ...]:
    """Every clock change from `start` on and before `end`, in order. Zones with the same change share one
    entry."""
    found: dict[tuple[datetime, datetime, datetime], list[str]] = defaultdict(list)
    for name in sorted(set(zones)):
        for at in _changes(name, start, end):
            was, now = _wall(name, at - timedelta(microseconds=1)), _wall(name, at)
            # `was` is the last local time before the change; people name the time one microsecond later.
            found[at, was + timedelta(microseconds=1), now].append(name)
    return tuple(
        Night(at=at, zones=tuple(names), was=was.replace(tzinfo=UTC), now=now.replace(tzinfo=UTC))
        for (at, was, now), names in sorted(found.items())
    )


def _cells(hours: Sequence[Hour], odd: Sequence[Night], shades: Sequence[int]) -> dict[datetime, Cell]:
    by_hour: dict[datetime, list[Night]] = {}
    for each in odd:
        by_hour.setdefault(each.at.replace(minute=0, second=0), []).append(each)
    busy = {each.start: each for each in hours}
    return {
        at: Cell(
            at=at,
            jobs=busy[at].jobs if at in busy else 0,
            busiest=busy[at].busiest if at in busy else 0,
            level=level(busy[at].jobs, shades) if at in busy else 0,
            nights=tuple(by_hour.get(at, ())),
        )
        for at in busy.keys() | by_hour.keys()
    }


def _day(midnight: datetime, cells: dict[datetime, Cell], now: datetime) -> HeatDay:
    row = []
    for number in range(24):
        at = midnight + number * _HOUR
        cell = cells.get(at) or Cell(at=at, jobs=0, busiest=0, level=0)
        row.append(replace(cell, past=True) if at + _HOUR <= now else cell)
    return HeatDay(day=midnight.date(), jobs=sum(each.jobs for each in row), cells=tuple(row))


def _burst(peak: Peak, most: int) -> BurstView:
    first = tuple(BurstPart(name=name, jobs=jobs) for name, jobs in peak.schedules[:NAMED])
    return BurstView(
        minute=peak.minute,
        jobs=peak.jobs,
        share=round(100 * peak.jobs / most),
        first=first,
        more=len(peak.schedules) - len(first),
    )


def _changes(name: str, start: datetime, end: datetime) -> list[datetime]:
    found = []
    day = start
    while day < end:
        following = min(day + _STEP, end)
        if _offset(name, day) != _offset(name, following):
            found.append(_between(name, day, following))
        day = following
    return found


def _offset(name: str, at: datetime) -> timedelta | None:
    return at.astimezone(zone(name)).utcoffset()


def _between(name: str, low: datetime, high: datetime) -> datetime:
    """The first instant, to the second, at which the zone has its new offset."""
    before = _offset(name, low)
    while high - low > _EXACT:
        middle = low + (high - low) / 2
        low, high = (middle, high) if _offset(name, middle) == before else (low, middle)
    return high.replace(microsecond=0)


def _wall(name: str, at: datetime) -> datetime:
    return at.astimezone(zone(name)).replace(tzinfo=None)
