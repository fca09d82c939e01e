"""From the options of a schedule to its trigger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal

from mainspring.calendars import Calendar
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.trigger.base import Trigger
from mainspring.trigger.bounded import Bounded
from mainspring.trigger.cron import Cron
from mainspring.trigger.instants import Instants
from mainspring.trigger.interval import EPOCH, Every
from mainspring.trigger.rolled import Roll, Rolled
from mainspring.trigger.rrule import RRule

MOST_FIRES = 1_000_000_000
KINDS = ("cron", "every", "rrule", "at")
OPTIONS_OF = {
    "cron": {"tz", "gap", "fold"},
    "every": {"anchor"},
    "rrule": {"tz", "dtstart", "exdates", "rdates"},
    "at": set[str](),
}
KIND_OPTIONS = ("tz", "gap", "fold", "anchor", "dtstart", "exdates", "rdates")
"""Those that go with some kinds only."""
GapOption = Literal["shift", "skip"]
FoldOption = Literal["first", "second", "both"]
HolidayOption = Literal["skip", "next", "previous"]
_REAL_TIME = "none: an interval or an instant is the same in every zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """What a user may say about when. Exactly one of the first four, and the options that go with it."""

    cron: str | None = None
    every: Duration | None = None
    rrule: str | None = None
    at: datetime | Sequence[datetime] | None = None
    tz: str = "UTC"
    gap: str = "shift"
    fold: str = "first"
    anchor: datetime | None = None
    dtstart: datetime | None = None
    exdates: Sequence[datetime] = ()
    rdates: Sequence[datetime] = ()
    start: datetime | None = None
    end: datetime | None = None
    calendar: Calendar | None = None
    on_holiday: str | None = None

    def trigger(self, name: str) -> Trigger:
        """The trigger of the schedule of this name, which H in a cron expression is hashed from."""
        trigger = self._kept_to_business_days(self._bare(name))
        return trigger if self.start is None and self.end is None else Bounded(trigger, self.start, self.end)

    def _bare(self, name: str) -> Trigger:
        kind = self._kind()
        self._refuse_options_of_others(kind)
        if self.cron is not None:
            return Cron(self.cron, self.tz, self.gap, self.fold, key=name)
        if self.every is not None:
            return Every(duration(self.every, "every"), EPOCH if self.anchor is None else self.anchor)
        if self.rrule is not None:
            if self.dtstart is None:
                raise InvalidArgument("dtstart", None, "the start that the rule counts from")
            return RRule(self.rrule, self.dtstart, self.tz, tuple(self.exdates), tuple(self.rdates))
        return Instants(tuple(self.at) if isinstance(self.at, list | tuple) else (self.at,))  # type: ignore[arg-type]  # checked there

    def _kind(self) -> str:
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            shown = {kind: getattr(self, kind) for kind in given}
            raise InvalidArgument("schedule", shown, "exactly one of cron, every, rrule and at")
        return given[0]

    def _refuse_options_of_others(self, kind: str) -> None:
        defaults = {each.name: each.default for each in fields(self)}
        for option in KIND_OPTIONS:
            value = getattr(self, option)
            if option not in OPTIONS_OF[kind] and value != defaults[option]:
                owners = " and ".join(owner for owner in KINDS if option in OPTIONS_OF[owner])
                expected = _REAL_TIME if kind in ("every", "at") and option == "tz" else f"only with {owners}"
                raise InvalidArgument(option, value, expected)

    def _kept_to_business_days(self, trigger: Trigger) -> Trigger:
        if self.calendar is None:
            if self.on_holiday is not None:
                raise InvalidArgument("on_holiday", self.on_holiday, "a calendar to say what a holiday is")
            return trigger
        if not isinstance(self.calendar, Calendar):
            raise InvalidArgument("calendar", self.calendar, "a Calendar")
        roll = Roll.SKIP if self.on_holiday is None else self.on_holiday
        return Rolled(trigger, self.calendar, roll, self.local_tz)  # type: ignore[arg-type]  # checked there

    @property
    def local_tz(self) -> str:
        """The zone that says what date it is. Intervals and instants have none of their own: there it is the
        calendar's."""
        zoned = self.cron is not None or self.rrule is not None
        return self.tz if zoned or not isinstance(self.calendar, Calendar) else self.calendar.tz


WHEN_OPTIONS = tuple(each.name for each in fields(When))


def valid_max_fires(value: int | None) -> int | None:
    """How many slots a schedule may fire in all; None for no limit."""
    if value is not None and (type(value) is not int or not 1 <= value <= MOST_FIRES):
        raise InvalidArgument("schedule.max_fires", value, f"a whole number from 1 to {MOST_FIRES}")
    return value
