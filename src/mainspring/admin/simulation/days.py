"""Which days of a zone are alike, so that a trigger need not be walked through all of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from mainspring.admin.simulation.simulate import INSTANT, Horizon
from mainspring.model.value import Value
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import Every
from mainspring.triggers.rolled import Roll, Rolled
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import zone

DAY = timedelta(days=1)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Stretch(Value, frozen=True, kw_only=True):
    """A local day of 24 hours, or a stretch that has to be walked."""

    start: datetime
    end: datetime
    plain: bool
    date: date
    """The first of its local dates."""


def daily_zone(trigger: Trigger) -> str | None:
    """The zone on whose plain days all slots follow from the first one; None if there is no such zone."""
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
    """The first slot of plain days, one after the other; dates are looked up once for all cron
    expressions that share them."""

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


def _dates(fields: str, horizon: Horizon) -> frozenset[date]:
    """The dates that the last three fields of a cron expression name, and some around them."""
    midnights, found = Cron(f"0 0 {fields}", "UTC"), []
    moment = midnights.next_after(horizon.start - 3 * DAY)
    while moment is not None and moment < horizon.end + 3 * DAY:
        found.append(moment.date())
        moment = midnights.next_after(moment)
    return frozenset(found)


def stretches(tz: str, horizon: Horizon) -> list[Stretch]:
    """The days of a zone inside the horizon; those that are not plain are joined with their neighbours."""
    joined: list[Stretch] = []
    for each in _days(tz, horizon):
        last = joined[-1] if joined else None
        if last is not None and not last.plain and not each.plain:
            joined[-1] = Stretch(start=last.start, end=each.end, plain=False, date=last.date)
        else:
            joined.append(each)
    return joined


def _days(tz: str, horizon: Horizon) -> Iterator[Stretch]:
    local = zone(tz)
    midnight = horizon.start.astimezone(local).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    start = _instant(midnight, tz)
    while start < horizon.end:
        today, midnight = midnight.date(), midnight + DAY
        end = _instant(midnight, tz)
        whole = end - start == DAY and not start.second
        inside = horizon.start <= start and end <= horizon.end
        # After an outage missed slots are made up for at a bounded rate: ten a second, of one a second.
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
