"""The load of the days to come, hour by hour: from how many schedules share a trigger, not from each."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from datetime import UTC, datetime, timedelta

from mainspring.clock import Clock
from mainspring.errors import UsageError
from mainspring.model.pages import HerdSize
from mainspring.model.schedule import Misfire, NewSchedule
from mainspring.model.value import Value
from mainspring.ops.load import Counting
from mainspring.ops.simulate import Herd, Horizon, Planned
from mainspring.ops.triggers import calendars_of
from mainspring.ops.views import View, iso
from mainspring.store.ports import Store
from mainspring.trigger.codec import Calendars, decode

DAYS = 7
KEPT = timedelta(minutes=10)
PATIENCE = timedelta(milliseconds=200)


class Hour(Value, frozen=True, kw_only=True):
    """One hour to come."""

    at: datetime
    jobs: int
    busiest: int
    """Jobs of its busiest minute."""


class Heat(Value, frozen=True, kw_only=True):
    """Hours from now on, those without a job left out."""

    since: datetime
    hours: tuple[Hour, ...]
    unread: int = 0
    """Schedules whose trigger this version cannot read."""


async def heat(store: Store, clock: Clock, *, days: int = DAYS) -> Heat:
    """Paused schedules, and those whose fires are counted, are left out: nobody knows for how long."""
    now = await store.now(at=clock.stamp())
    sizes = await store.herd_sizes()
    calendars = await calendars_of(store, sorted({each.trigger for each in sizes}))
    return heat_of(sizes, Horizon(start=now, end=now + timedelta(days=days)), calendars)


def heat_of(sizes: list[HerdSize], horizon: Horizon, calendars: Calendars | None = None) -> Heat:
    """The same for groups that are known."""
    groups: dict[tuple[str, timedelta | None], list[tuple[Planned, int]]] = defaultdict(list)
    for each in sizes:
        groups[each.trigger, each.catch_up].append((_stand_in(each), each.count))
    weights = {id(schedule): count for group in groups.values() for schedule, count in group}
    counting = Counting(horizon, weight=lambda schedule: weights[id(schedule)])
    unread = 0
    for (trigger, catch_up), group in groups.items():
        try:
            read = decode(trigger, calendars)
        except UsageError:
            unread += sum(count for _, count in group)
            continue
        schedules = tuple(schedule for schedule, _ in group)
        counting.add(Herd(trigger=trigger, catch_up=catch_up, schedules=schedules), read)
    midnight = horizon.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    hours = []
    for day, minutes in counting.days():
        for hour in range(24):
            part = minutes[hour * 60 : hour * 60 + 60]
            if jobs := sum(part):
                hours.append(
                    Hour(at=midnight + timedelta(days=day, hours=hour), jobs=jobs, busiest=max(part))
                )
    return Heat(since=horizon.start, hours=tuple(hours), unread=unread)


class Heater:
    """Remembers the last heat: a hundred thousand schedules take a second. Who asks is answered what there
    is, and while that is old, or not there yet, another one is made aside, on a thread of its own."""

    def __init__(self, store: Store, clock: Clock, *, days: int = DAYS) -> None:
        self._store, self._clock, self._days = store, clock, days
        self._last: Heat | None = None
        self._made = 0.0
        self._making: asyncio.Task[None] | None = None

    async def heat(self) -> Heat | None:
        """None while the first one is being made."""
        old = self._last is None or self._clock.monotonic() - self._made > KEPT.total_seconds()
        if self._making is not None and self._making.done():
            made, self._making = self._making, None
            if self._last is None:
                made.result()  # what went wrong is told to whoever asks next, who then tries again
        elif old and self._making is None:
            self._making = asyncio.ensure_future(self._make())
        if self._last is None and self._making is not None:
            await asyncio.wait({self._making}, timeout=PATIENCE.total_seconds())
        return self._last

    async def _make(self) -> None:
        now = await self._store.now(at=self._clock.stamp())
        sizes = await self._store.herd_sizes()
        calendars = await calendars_of(self._store, sorted({each.trigger for each in sizes}))
        horizon = Horizon(start=now, end=now + timedelta(days=self._days))
        self._last = await asyncio.to_thread(heat_of, sizes, horizon, calendars)
        self._made = self._clock.monotonic()


def heat_view(found: Heat) -> View:
    """For JSON."""
    hours = [{"at": iso(each.at), "jobs": each.jobs, "busiest": each.busiest} for each in found.hours]
    return {"since": iso(found.since), "hours": hours, "unread": found.unread}


def _stand_in(size: HerdSize) -> NewSchedule:
    """One schedule for all that are alike."""
    return NewSchedule(
        name="",
        task="",
        trigger=size.trigger,
        payload=b"",
        misfire=Misfire.LATEST if size.catch_up is None else Misfire.ALL,
        catch_up=size.catch_up or timedelta(days=1),
        offset=size.offset,
    )
