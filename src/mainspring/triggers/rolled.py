"""Slots that fall on no business day: left out, or moved to the next or the previous one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol

from mainspring.errors import InvalidArgument
from mainspring.model.value import choice
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import LocalClock, zone

_DAY, _TICK = timedelta(days=1), timedelta(microseconds=1)


RollOption = Literal["skip", "next", "previous"]
"""The same words as the members of the class below, in the form that type checkers need."""


class Roll(StrEnum):
    """What happens to a slot whose local date is no business day."""

    SKIP = "skip"
    """It stays in the ledger, skipped: `is_skipped` says which."""
    NEXT = "next"
    PREVIOUS = "previous"


class BusinessDays(Protocol):
    """What a trigger needs to know of a calendar. The two searches start with the date itself."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def tz(self) -> str: ...
    def is_business_day(self, day: date) -> bool: ...
    def next_business_day(self, day: date) -> date: ...
    def previous_business_day(self, day: date) -> date: ...


@dataclass(frozen=True, slots=True)
class Rolled:
    """The slots of another trigger, kept to the business days of a calendar.

    A slot that moves keeps its wall time in `tz`, the calendar's own zone if not given; slots that
    come to lie on the same instant are one. There a skipped wall time is the first instant after its
    gap, a repeated one the first.
    """

    trigger: Trigger
    calendar: BusinessDays
    roll: Roll
    tz: str = ""
    _clock: LocalClock = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "roll", choice(Roll, self.roll, "on_holiday"))
        if isinstance(self.trigger, Rolled | Bounded):
            raise InvalidArgument("trigger", self.trigger, "one without bounds and other business days")
        object.__setattr__(self, "tz", self.tz or self.calendar.tz)
        object.__setattr__(self, "_clock", LocalClock(zone(self.tz)))

    def next_after(self, moment: datetime) -> datetime | None:
        if self.roll is Roll.SKIP:
            return self.trigger.next_after(moment)
        try:
            return self._moved_after(moment)
        except OverflowError:
            return None

    def is_skipped(self, slot: datetime) -> bool:
        """Whether the calendar takes this slot away; one that moves is never skipped."""
        return self.roll is Roll.SKIP and not self.calendar.is_business_day(self._date(slot))

    def encode(self) -> str:
        facts = {
            "rolled": json.loads(self.trigger.encode()),
            "roll": self.roll,
            "calendar": {"name": self.calendar.name, "version": self.calendar.version},
            "tz": self.tz,
        }
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))

    def _moved_after(self, moment: datetime) -> datetime | None:
        day = self.calendar.next_business_day(self._date(moment))
        while True:
            first, last = self._sources(day)
            source = self.trigger.next_after(self._midnight(first) - _TICK)
            if source is None:
                return None
            if self._date(source) <= last:
                slot = self._earliest(first, last, day, moment)
                if slot is not None:
                    return slot
                day = self.calendar.next_business_day(day + _DAY)
            else:
                day = self._target(self._date(source))

    def _target(self, day: date) -> date:
        if self.roll is Roll.NEXT:
            return self.calendar.next_business_day(day)
        return self.calendar.previous_business_day(day)

    def _sources(self, day: date) -> tuple[date, date]:
        """First and last of the dates whose slots come to lie on this business day."""
        if self.roll is Roll.NEXT:
            return self.calendar.previous_business_day(day - _DAY) + _DAY, day
        return day, self.calendar.next_business_day(day + _DAY) - _DAY

    def _earliest(self, first: date, last: date, day: date, moment: datetime) -> datetime | None:
        """The first instant after `moment` on this business day, of all that come to lie on it."""
        wall = self._clock.wall(moment)
        since = wall - datetime.combine(day, datetime.min.time()) if wall.date() == day else timedelta()
        found = []
        source: date | None = first
        while source is not None and source <= last:
            if source == day:
                found.append(self._own(day, moment))
            else:
                found.extend(self._from(source, since, day, moment))
            following = self.trigger.next_after(self._midnight(source + _DAY) - _TICK)
            # Clocks put back just after midnight show the date before once more.
            source = None if following is None else max(self._date(following), source + _DAY)
        return min((slot for slot in found if slot is not None), default=None)

    def _own(self, day: date, moment: datetime) -> datetime | None:
        slot = self.trigger.next_after(max(moment, self._midnight(day) - _TICK))
        return slot if slot is not None and self._date(slot) == day else None

    def _from(self, source: date, since: timedelta, day: date, moment: datetime) -> list[datetime | None]:
        """The first slot of each part of a date: where the clocks go back, wall times start anew."""
        start, end = self._midnight(source), self._midnight(source + _DAY)
        wall = datetime.combine(source, datetime.min.time()) + since
        begin = [max(start, self._clock.settled(wall))]
        if self._clock.offset(start) != self._clock.offset(end):
            begin.append(max(self._clock.change(start, end), self._clock.reading(wall, fold=1)))
        return [self._first_moved(each - _TICK, source, day, moment) for each in begin]

    def _first_moved(self, begin: datetime, source: date, day: date, moment: datetime) -> datetime | None:
        slot = self.trigger.next_after(begin)
        while slot is not None and self._date(slot) == source:
            time = self._clock.wall(slot).time()
            moved = self._clock.settled(datetime.combine(day, time))
            if moved > moment:
                return moved
            slot = self.trigger.next_after(slot)
        return None

    def _date(self, moment: datetime) -> date:
        return self._clock.wall(moment).date()

    def _midnight(self, day: date) -> datetime:
        """The first instant of a date."""
        return self._clock.settled(datetime.combine(day, datetime.min.time()))


def is_skipped(trigger: Trigger, slot: datetime) -> bool:
    """Whether a calendar takes this slot of the trigger away: then it is skipped for "calendar"."""
    while isinstance(trigger, Bounded):
        trigger = trigger.trigger
    return isinstance(trigger, Rolled) and trigger.is_skipped(slot)
