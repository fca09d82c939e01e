"""The options of a schedule: when it fires, and what happens to slots that are missed or overlap."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta

from mainspring.duration import Duration, duration, format_duration
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Misfire, MisfireOption, Overlap, OverlapOption
from mainspring.model.value import choice
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import EPOCH, Every, Instants
from mainspring.triggers.rolled import Roll, Rolled, RollOption
from mainspring.triggers.rrule import RRule
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import FoldOption, GapOption

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
_REAL_TIME = "none: an interval or an instant is the same in every zone"
MOST_AT_ONCE = 10_000
_NONE = timedelta()
_MILLISECOND, _SECOND = timedelta(milliseconds=1), timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerOptions:
    """What a user may say about when. Exactly one of the first four, and the options that go with it."""

    cron: str | None = None
    every: Duration | None = None
    rrule: str | None = None
    at: datetime | Sequence[datetime] | None = None
    tz: str = "UTC"
    gap: GapOption = "shift"
    fold: FoldOption = "first"
    anchor: datetime | None = None
    dtstart: datetime | None = None
    exdates: Sequence[datetime] = ()
    rdates: Sequence[datetime] = ()
    start: datetime | None = None
    end: datetime | None = None
    calendar: Calendar | None = None
    on_holiday: RollOption | None = None

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


WHEN_OPTIONS = tuple(each.name for each in fields(TriggerOptions))


def _valid_max_fires(value: int | None) -> int | None:
    """How many slots a schedule may fire in all; None for no limit."""
    if value is not None and (type(value) is not int or not 1 <= value <= MOST_FIRES):
        raise InvalidArgument("schedule.max_fires", value, f"a whole number from 1 to {MOST_FIRES}")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of one schedule."""

    misfire: Misfire
    catch_up: timedelta | None
    overlap: Overlap
    overlap_limit: int
    offset: timedelta
    jitter: timedelta
    max_fires: int | None
    expect_start_within: timedelta | None = None
    expect_finish_by: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """What a user may say. `allow=n` is short for overlap="allow" with at most n live at once."""

    misfire: MisfireOption = "latest"
    catch_up: Duration | None = None
    overlap: OverlapOption | None = None
    allow: int | None = None
    window: Duration | None = None
    jitter: Duration | None = None
    max_fires: int | None = None
    expect_start_within: Duration | None = None
    expect_finish_by: Duration | None = None

    def policies(self, name: str) -> Policies:
        """Check them; the schedule's name gives it its place in the window."""
        found = Policies(
            misfire=choice(Misfire, self.misfire, "schedule.misfire"),
            catch_up=None
            if self.catch_up is None
            else duration(self.catch_up, "schedule.catch_up", least=_NONE),
            overlap=self._overlap(),
            overlap_limit=1 if self.allow is None else _count(self.allow),
            offset=_NONE if self.window is None else _place(name, self.window),
            jitter=_NONE if self.jitter is None else duration(self.jitter, "schedule.jitter", least=_NONE),
            max_fires=_valid_max_fires(self.max_fires),
            expect_start_within=_expected(self.expect_start_within, "expect_start_within"),
            expect_finish_by=_expected(self.expect_finish_by, "expect_finish_by"),
        )
        check_expectations(found)
        return found

    def _overlap(self) -> Overlap:
        if self.allow is not None and self.overlap not in (None, "allow"):
            raise InvalidArgument("schedule.allow", self.allow, 'none, or with overlap="allow"')
        if self.overlap == "allow" and self.allow is None:
            raise InvalidArgument("schedule.allow", self.allow, "how many may be live at once")
        if self.overlap is None:
            return Overlap.SKIP if self.allow is None else Overlap.ALLOW
        return choice(Overlap, self.overlap, "schedule.overlap")


def _place(name: str, given: Duration) -> timedelta:
    """The schedule's own place in the window: the same for ever, and spread evenly over names."""
    window = duration(given, "schedule.window", least=_NONE)
    number = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8, person=b"window").digest())
    steps = window // _MILLISECOND
    return (number % steps) * _MILLISECOND if steps else _NONE


def _expected(given: Duration | None, field: str) -> timedelta | None:
    return None if given is None else duration(given, f"schedule.{field}", least=_SECOND)


def check_expectations(found: Policies) -> None:
    """Refuse what no slot could ever keep to."""
    start, finish = found.expect_start_within, found.expect_finish_by
    latest = found.offset + found.jitter
    for name, expected in (("expect_start_within", start), ("expect_finish_by", finish)):
        if expected is not None and expected <= latest:
            raise InvalidArgument(
                f"schedule.{name}",
                format_duration(expected),
                f"more than its window and jitter, which may take {format_duration(latest)}",
            )
    if start is not None and finish is not None and finish < start:
        raise InvalidArgument(
            "schedule.expect_finish_by",
            format_duration(finish),
            f"at least expect_start_within, which is {format_duration(start)}",
        )


def _count(allow: int) -> int:
    if isinstance(allow, bool) or not isinstance(allow, int) or not 1 <= allow <= MOST_AT_ONCE:
        raise InvalidArgument("schedule.allow", allow, f"a whole number from 1 to {MOST_AT_ONCE}")
    return allow
