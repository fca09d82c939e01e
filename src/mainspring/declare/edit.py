"""From a stored schedule back to the options that make it, and to others where somebody says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, cast

from mainspring.calendars import Calendar
from mainspring.declare.policies import Policies, PolicyOptions, check_expectations
from mainspring.declare.when import KIND_OPTIONS, KINDS, OPTIONS_OF, When
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Overlap
from mainspring.trigger.base import Trigger
from mainspring.trigger.bounded import Bounded
from mainspring.trigger.cron import Cron
from mainspring.trigger.instants import Instants
from mainspring.trigger.interval import EPOCH, Every
from mainspring.trigger.rolled import Rolled
from mainspring.trigger.rrule import RRule
from mainspring.trigger.zones import zone

Said = Mapping[str, Any]
"""Options by name; None asks for an option's default."""
_KEPT = ("misfire", "catch_up", "jitter", "max_fires", "expect_start_within", "expect_finish_by")


def options_of(trigger: Trigger) -> When:
    """What a user says to get this trigger; every H of a cron expression is resolved by then."""
    match trigger:
        case Bounded():
            return replace(options_of(trigger.trigger), start=trigger.start, end=trigger.end)
        case Rolled():
            calendar = cast("Calendar", trigger.calendar)
            return replace(options_of(trigger.trigger), calendar=calendar, on_holiday=trigger.roll.value)
        case Cron():
            return When(cron=trigger.expression, tz=trigger.tz, gap=trigger.gap, fold=trigger.fold)
        case Every():
            return When(every=trigger.period, anchor=None if trigger.anchor == EPOCH else trigger.anchor)
        case RRule():
            return When(
                rrule=trigger.rule,
                dtstart=trigger.dtstart,
                tz=trigger.tz,
                exdates=trigger.exdates,
                rdates=trigger.rdates,
            )
        case Instants():
            return When(at=trigger.moments)
        case _:
            raise InvalidArgument("trigger", trigger, "one that options can make")


def changed_when(stored: When, said: Said) -> When:
    """The same with some options said anew. A trigger of another kind keeps of the old one what both
    kinds know: bounds, the calendar, and a zone where both have one."""
    defaults: dict[str, Any] = {each.name: each.default for each in fields(When)}
    asked = {name: defaults[name] if value is None else value for name, value in said.items()}
    kept = stored
    kinds = [kind for kind in KINDS if asked.get(kind) is not None]
    if kinds and getattr(stored, kinds[0]) is None:
        known = set().union(*(OPTIONS_OF[kind] for kind in kinds))
        gone = (*KINDS, *(option for option in KIND_OPTIONS if option not in known))
        kept = replace(kept, **{each: defaults[each] for each in gone})
    if "calendar" in asked and asked["calendar"] is None:
        kept = replace(kept, on_holiday=None)
    if kept.rrule is not None and asked.get("tz", kept.tz) != kept.tz:
        # Instants left out or added are wall times of the rule: they move with it.
        kept = replace(kept, exdates=_walls(kept, "exdates"), rdates=_walls(kept, "rdates"))
    return replace(kept, **asked)


def changed_policies(name: str, stored: Policies, said: Said) -> Policies:
    """The same with some options said anew. Of a window the place in it is kept, not its length."""
    defaults: dict[str, Any] = {each.name: each.default for each in fields(PolicyOptions)}
    asked = {each: defaults[each] if value is None else value for each, value in said.items()}
    allow = stored.overlap_limit if stored.overlap is Overlap.ALLOW else None
    if "overlap" not in asked and "allow" not in asked:
        asked |= {"overlap": stored.overlap.value, "allow": allow}
    elif asked.get("overlap") == Overlap.ALLOW:
        asked = {"allow": allow, **asked}
    kept = {each: getattr(stored, each) for each in _KEPT}
    found = PolicyOptions(**{**kept, **asked}).policies(name)
    if "window" not in asked:
        found = replace(found, offset=stored.offset)
        check_expectations(found)
    return found


def _walls(when: When, name: str) -> tuple[datetime, ...]:
    own = zone(when.tz)
    moments: tuple[datetime, ...] = getattr(when, name)
    return tuple(each.astimezone(own).replace(tzinfo=None) for each in moments)
