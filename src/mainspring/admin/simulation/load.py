"""Counts the jobs of schedules in each minute, without a list of their slots.

The jobs of a day are one large integer, with 32 bits for each minute. The whole day of a trigger is added
at once, and most days of a trigger are equal.
"""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from msgspec.structs import replace

from mainspring.admin.simulation.simulate import (
    INSTANT,
    Burst,
    Fate,
    Horizon,
    Life,
    Planned,
    bursts,
    openings,
)
from mainspring.model.value import Value
from mainspring.tasks.schedule_options import PolicyOptions
from mainspring.triggers.codec import Calendars, decode
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from mainspring.triggers.rolled import Roll, Rolled, is_skipped
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import zone

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MINUTES = DAY // MINUTE
COUNTER_BITS = 32
"""Bits for each minute."""
Offset = Callable[[Planned], timedelta]
"""How long after its slot a schedule's job is due."""
_Parts = list[tuple[int, int]]
"""Pairs: a number of days after the first day, and the integer to add to that day."""
_NEVER = datetime.max.replace(tzinfo=UTC)


class Peak(Value, frozen=True, kw_only=True):
    """A busy minute, and how many of its jobs each schedule makes there."""

    minute: datetime
    jobs: int
    schedules: tuple[tuple[str, int], ...] = ()
    """The largest part first. Jobs that are caught up after an outage have no name here."""


class Hour(Value, frozen=True, kw_only=True):
    """An hour in which there are jobs."""

    start: datetime
    jobs: int
    busiest: int
    """Jobs of its busiest minute."""


class Load(Value, frozen=True, kw_only=True):
    """Jobs by minute, summed up."""

    total: int
    busy_minutes: int
    peaks: tuple[Peak, ...]
    by_hour: tuple[int, ...]
    """The busiest minute of each hour of the day, in UTC."""
    hours: tuple[Hour, ...] = ()
    """The hours with jobs, in order."""


def own_offset(schedule: Planned) -> timedelta:
    """The offset of the schedule in its own window."""
    return schedule.offset


def spread_in(schedule: Planned, window: timedelta) -> timedelta:
    """The offset that a schedule would have in this window, unless it has its own offset."""
    return schedule.offset or PolicyOptions(window=window).policies(schedule.name).offset


def load(
    schedules: Iterable[Planned],
    horizon: Horizon,
    calendars: Calendars | None = None,
    *,
    offset: Offset = own_offset,
    peaks: int = 10,
    name: bool = True,
) -> Load:
    """The jobs of every minute by due time, as if no two jobs of a schedule overlapped. With `name`, each
    peak has the names of its schedules."""
    counting = Counting(horizon, offset)
    groups = [(burst, decode(burst.trigger, calendars)) for burst in bursts(schedules)]
    for burst, trigger in groups:
        counting.add(burst, trigger)
    summed = counting.summed(peaks)
    if not name:
        return summed
    named = tuple(_named(peak, groups, horizon, offset) for peak in summed.peaks)
    return replace(summed, peaks=named)


class Counting:
    """Adds up jobs by minute."""

    def __init__(self, horizon: Horizon, offset: Offset = own_offset) -> None:
        self._horizon, self._offset = horizon, offset
        self._origin = horizon.start.replace(hour=0, minute=0, second=0, microsecond=0)
        self._days: dict[int, int] = defaultdict(int)
        self._single: Counter[int] = Counter()
        self._stretches: dict[str, list[Stretch]] = {}
        self._dates: dict[str, frozenset[date]] = {}

    def add(self, burst: Burst, trigger: Trigger) -> None:
        """Count the jobs of schedules that share a trigger."""
        lives = [(each, Life(each)) for each in burst.schedules]
        free = [each for each, life in lives if not life.paused and not life.counted]
        for each, life in lives:
            if life.counted and not life.paused:
                self._walk(replace(burst, schedules=(each,)), trigger)
        if free:
            self._add_all(replace(burst, schedules=tuple(free)), trigger)

    def _add_all(self, burst: Burst, trigger: Trigger) -> None:
        tz = daily_zone(trigger)
        if tz is None:
            self._walk(burst, trigger)
            return
        if tz not in self._stretches:
            self._stretches[tz] = stretches(tz, self._horizon)
        offsets = self._offsets(burst)
        known: dict[tuple[timedelta, int], _Parts] = {}
        firsts = Firsts(trigger, self._horizon, self._dates)
        for each in self._stretches[tz]:
            if not each.plain or not within_bounds(trigger, each):
                self._walk(burst, trigger, each)
                continue
            first = firsts.of(each)
            if first is not None and not is_skipped(trigger, first):
                self._add_day(each, first, trigger, offsets, known)

    def _add_day(
        self,
        day: Stretch,
        first: datetime,
        trigger: Trigger,
        offsets: Counter[timedelta],
        known: dict[tuple[timedelta, int], _Parts],
    ) -> None:
        since, minute = divmod((day.start - self._origin) // MINUTE, MINUTES)
        key = first - day.start, minute
        if key not in known:
            known[key] = _parts(_slots(trigger, first, day.end), day.start - minute * MINUTE, offsets)
        for days_on, number in known[key]:
            self._days[since + days_on] += number

    def _walk(self, burst: Burst, trigger: Trigger, stretch: Stretch | None = None) -> None:
        """Count slot by slot, as schedulers would fire."""
        horizon = self._horizon
        if stretch is not None:
            horizon = Horizon(
                start=stretch.start, end=stretch.end, outages=horizon.outages, breaker=horizon.breaker
            )
        lives = [(each, Life(each)) for each in burst.schedules]
        if not horizon.outages and not any(life.counted or life.paused for _, life in lives):
            self._walk_alike(burst, trigger, horizon)
            return
        for opening, now in openings(burst, trigger, horizon):
            for each, life in lives:
                if life.decide(opening, now).fate is Fate.FIRED:
                    due = max(opening.slot_at + self._offset(each), now)
                    self._single[(due - self._origin) // MINUTE] += 1
            if all(life.exhausted for _, life in lives):
                return

    def _walk_alike(self, burst: Burst, trigger: Trigger, horizon: Horizon) -> None:
        """Count slots that have the same result for all schedules: no slot is missed, no fire is counted."""
        offsets = self._offsets(burst)
        for opening, _ in openings(burst, trigger, horizon):
            if opening.skip is None:
                for offset, schedules in offsets.items():
                    self._single[(opening.slot_at + offset - self._origin) // MINUTE] += schedules

    def _offsets(self, burst: Burst) -> Counter[timedelta]:
        """The number of schedules for each offset after a slot."""
        offsets: Counter[timedelta] = Counter()
        for each in burst.schedules:
            offsets[self._offset(each)] += 1
        return offsets

    def summed(self, peaks: int) -> Load:
        """The sums, with the busiest minutes first, and the earliest of equal ones first."""
        hours, total, busy = [0] * 24, 0, 0
        each_hour: list[Hour] = []
        best: list[tuple[int, int]] = []
        for day, counts in self.days():
            total += sum(counts)
            busy += MINUTES - counts.count(0)
            for hour in range(24):
                minutes = counts[hour * 60 : hour * 60 + 60]
                hours[hour] = max(hours[hour], most := max(minutes))
                if most:
                    start = self._origin + day * DAY + hour * 60 * MINUTE
                    each_hour.append(Hour(start=start, jobs=sum(minutes), busiest=most))
            top = heapq.nlargest(peaks, ((n, -(day * MINUTES + at)) for at, n in enumerate(counts) if n))
            best = heapq.nlargest(peaks, best + top)
        found = tuple(Peak(minute=self._origin - at * MINUTE, jobs=n) for n, at in best)
        return Load(total=total, busy_minutes=busy, peaks=found, by_hour=tuple(hours), hours=tuple(each_hour))

    def days(self) -> Iterator[tuple[int, array[int]]]:
        """Jobs of each minute of each day, counted in days from the first."""
        singles: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for minute, count in self._single.items():
            singles[minute // MINUTES].append((minute % MINUTES, count))
        for day in sorted(self._days.keys() | singles.keys()):
            counts = array("I", self._days.get(day, 0).to_bytes(MINUTES * COUNTER_BITS // 8, "little"))
            for at, count in singles.get(day, ()):
                counts[at] += count
            yield day, counts


class Stretch(Value, frozen=True, kw_only=True):
    """A local day of 24 hours (`plain`), or a period whose slots must be counted one by one."""

    start: datetime
    end: datetime
    plain: bool
    date: date
    """The first of its local dates."""


def daily_zone(trigger: Trigger) -> str | None:
    """The time zone in which the first slot of a plain day decides all others; None if there is none."""
    match trigger:
        case Bounded():
            return daily_zone(trigger.trigger)
        case Rolled(roll=Roll.SKIP) if daily_zone(trigger.trigger) == trigger.tz:
            return trigger.tz
        case Cron():
            return trigger.tz
        case Every():
            return "UTC"
        case _:
            return None


def within_bounds(trigger: Trigger, day: Stretch) -> bool:
    """Whether no bound of the trigger cuts into this day."""
    if not isinstance(trigger, Bounded):
        return True
    starts = trigger.start is None or not day.start < trigger.start < day.end
    return starts and (trigger.end is None or not day.start < trigger.end < day.end)


class Firsts:
    """Finds the first slot of each plain day. The dates of cron expressions with the same date fields are
    computed once."""

    def __init__(self, trigger: Trigger, horizon: Horizon, dates: dict[str, frozenset[date]]) -> None:
        self._trigger, self._next = trigger, horizon.start - INSTANT
        self._since: timedelta | None = None
        self._dates: frozenset[date] | None = None
        cron = trigger.trigger if isinstance(trigger, Rolled) else trigger
        if isinstance(cron, Cron):
            fields = " ".join(cron.expression.split()[-3:])
            if fields not in dates:
                dates[fields] = _dates(fields, horizon)
            self._dates = dates[fields]

    def of(self, day: Stretch) -> datetime | None:
        """The first slot of a day, if it has one."""
        if self._dates is not None and (day.date not in self._dates or self._since is not None):
            return None if self._since is None or day.date not in self._dates else day.start + self._since
        if self._next < day.start:
            self._next = self._trigger.next_after(day.start - INSTANT) or _NEVER
        if self._next >= day.end:
            return None
        self._since = self._next - day.start
        return self._next


def stretches(tz: str, horizon: Horizon) -> list[Stretch]:
    """The days of a zone inside the horizon; neighbouring days that are not plain are joined."""
    joined: list[Stretch] = []
    for each in _days(tz, horizon):
        last = joined[-1] if joined else None
        if last is not None and not last.plain and not each.plain:
            joined[-1] = Stretch(start=last.start, end=each.end, plain=False, date=last.date)
        else:
            joined.append(each)
    return joined


def _named(peak: Peak, groups: list[tuple[Burst, Trigger]], horizon: Horizon, offset: Offset) -> Peak:
    """The peak with the names of its schedules."""
    jobs: Counter[str] = Counter()
    for burst, trigger in groups:
        for offset_by, names in _by_offset(burst, offset).items():
            start = max(peak.minute - offset_by, horizon.start)
            end = min(peak.minute + MINUTE - offset_by, horizon.end)
            first = trigger.next_after(start - INSTANT)
            count = 0 if first is None else sum(1 for _ in _slots(trigger, first, end))
            if count and first is not None and not is_skipped(trigger, first):
                jobs.update(dict.fromkeys(names, count))
    return Peak(minute=peak.minute, jobs=peak.jobs, schedules=tuple(jobs.most_common()))


def _by_offset(burst: Burst, offset: Offset) -> dict[timedelta, list[str]]:
    groups: dict[timedelta, list[str]] = defaultdict(list)
    for each in burst.schedules:
        if not Life(each).paused:
            groups[offset(each)].append(each.name)
    return groups


def _slots(trigger: Trigger, first: datetime, end: datetime) -> Iterator[datetime]:
    slot: datetime | None = first
    while slot is not None and slot < end:
        yield slot
        slot = trigger.next_after(slot)


def _parts(slots: Iterable[datetime], midnight: datetime, offsets: Counter[timedelta]) -> _Parts:
    """The jobs of one day as numbers, cut where the days of UTC begin."""
    minutes: Counter[int] = Counter()
    since = [slot - midnight for slot in slots]
    for offset, schedules in offsets.items():
        for minute, count in Counter((each + offset) // MINUTE for each in since).items():
            minutes[minute] += count * schedules
    days: dict[int, array[int]] = {}
    for minute, count in minutes.items():
        day, at = divmod(minute, MINUTES)
        days.setdefault(day, array("I", bytes(MINUTES * COUNTER_BITS // 8)))[at] += count
    return [(day, int.from_bytes(counts.tobytes(), "little")) for day, counts in days.items()]


def _dates(fields: str, horizon: Horizon) -> frozenset[date]:
    """The dates that the last three fields of a cron expression name, and some around them."""
    midnights, found = Cron(f"0 0 {fields}", "UTC"), []
    moment = midnights.next_after(horizon.start - 3 * DAY)
    while moment is not None and moment < horizon.end + 3 * DAY:
        found.append(moment.date())
        moment = midnights.next_after(moment)
    return frozenset(found)


def _days(tz: str, horizon: Horizon) -> Iterator[Stretch]:
    local = zone(tz)
    midnight = horizon.start.astimezone(local).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    start = _instant(midnight, tz)
    while start < horizon.end:
        today, midnight = midnight.date(), midnight + DAY
        end = _instant(midnight, tz)
        whole = end - start == DAY and not start.second
        inside = horizon.start <= start and end <= horizon.end
        # After an outage missed slots are caught up at a bounded rate: ten a second, if one is due a second.
        calm = all(
            end <= each.start or each.end + DAY + (each.end - each.start) / 8 <= start
            for each in horizon.outages
        )
        yield Stretch(
            start=max(start, horizon.start),
            end=min(end, horizon.end),
            plain=whole and inside and calm,
            date=today,
        )
        start = end


def _instant(wall: datetime, tz: str) -> datetime:
    return wall.replace(tzinfo=zone(tz)).astimezone(UTC)
