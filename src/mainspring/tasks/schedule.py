"""Schedules as code declares them, and as a change of their options makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Any, cast

from mainspring.errors import InvalidArgument
from mainspring.model.schedule import NewSchedule, Overlap
from mainspring.tasks import payload
from mainspring.tasks.checks import valid_name, valid_priority
from mainspring.tasks.retry import DEFAULT, Retry
from mainspring.tasks.schedule_options import (
    KIND_OPTIONS,
    KINDS,
    OPTIONS_OF,
    WHEN_OPTIONS,
    Policies,
    PolicyOptions,
    TriggerOptions,
    check_expectations,
)
from mainspring.tasks.task import Task
from mainspring.tasks.workflow_task import WorkflowTask
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import EPOCH, Every, Instants
from mainspring.triggers.rolled import Rolled
from mainspring.triggers.rrule import RRule
from mainspring.triggers.slots import shortest_gap
from mainspring.triggers.trigger import Bounded, Trigger
from mainspring.triggers.zones import zone

_POLICIES = tuple(each.name for each in fields(Policies))
FEWEST_ATTEMPTS = 3
"""For the job of a slot, however soon the next slot comes: one temporary failure must not make it a dead
letter."""
GivenOptions = Mapping[str, Any]
"""Options by name; None sets an option to its default."""
_KEPT = ("misfire", "catch_up", "jitter", "max_fires", "expect_start_within", "expect_finish_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDeclaration:
    """A task with a trigger and policies: checked, and not yet in any store."""

    name: str
    task: Task[..., object]
    trigger: Trigger
    payload: bytes
    policies: Policies
    queue: str
    priority: int
    calendar: Calendar | None = None
    """The one its trigger names: the store must hold it before it can read the trigger."""

    def new_schedule(self, now: datetime) -> NewSchedule:
        """What is written: with the first two slots after now, in case the trigger is new to the store."""
        return NewSchedule(
            name=self.name,
            task=self.task.name,
            payload=self.payload,
            queue=self.queue,
            priority=self.priority,
            max_attempts=attempts_of_slots(
                self.task.attempts, self.task.retry, self.trigger, self.policies.overlap
            ),
            limit_keys=self.task.limit_keys(self.queue, *payload.decode(self.payload)),
            expires=self.task.expires,
            **{each: getattr(self.policies, each) for each in _POLICIES}
            | {"catch_up": _sooner(self.policies.catch_up, self.task.expires)},
            **beginning(self.trigger, now),
        )


def attempts_of_slots(attempts: int, retry: Retry, trigger: Trigger, overlap: Overlap) -> int:
    """How often a slot's job is tried. Where the task sets no number, and slots are skipped while a job is
    live, no more than there is time for before the next slot: a job that waits for its next attempt is
    live."""
    if retry != DEFAULT or attempts != DEFAULT.attempts or overlap is not Overlap.SKIP:
        return attempts
    return max(DEFAULT.within(shortest_gap(trigger)), FEWEST_ATTEMPTS)


def beginning(trigger: Trigger, now: datetime) -> dict[str, Any]:
    """The part of a NewSchedule that says when, with its first two slots after now."""
    next_at = trigger.next_after(now)
    following_at = None if next_at is None else trigger.next_after(next_at)
    return {"trigger": trigger.encode(), "next_at": next_at, "following_at": following_at}


def _sooner(one: timedelta | None, other: timedelta | None) -> timedelta | None:
    # A slot that is past its deadline is missed for good: there is nothing in catching it up.
    return min((each for each in (one, other) if each is not None), default=None)


def declare_schedule(
    name: str,
    task: Task[..., object],
    *,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    queue: str | None = None,
    priority: int | None = None,
    **options: Any,
) -> ScheduleDeclaration:
    """Check a schedule. The options are those of `TriggerOptions` and of `PolicyOptions`; `app.schedule` says
    what each means. The arguments must fit the task; of a workflow, what they leave out is filled from
    each slot."""
    if not isinstance(task, Task):
        raise InvalidArgument("schedule.task", task, "a task: a function declared with @app.task")
    if task.expires_at is not None:
        raise InvalidArgument(
            "schedule.task", task.expires_at, "expires as a duration: each slot has its own deadline"
        )
    when = TriggerOptions(**{each: options.pop(each) for each in WHEN_OPTIONS if each in options})
    named = dict(kwargs or {})
    if isinstance(task, WorkflowTask):
        named = task.marked(named, when.local_tz)
    task.check(args, named)
    return ScheduleDeclaration(
        name=valid_name(name, "schedule.name"),
        task=task,
        trigger=when.trigger(valid_name(name, "schedule.name")),
        payload=payload.encode(args, named, field=task.name),
        policies=PolicyOptions(**options).policies(name),
        queue=task.queue if queue is None else valid_name(queue, "schedule.queue"),
        priority=task.priority if priority is None else valid_priority(priority, "schedule.priority"),
        calendar=when.calendar,
    )


def options_of(trigger: Trigger) -> TriggerOptions:
    """The options that give this trigger; every H of a cron expression is resolved in them."""
    match trigger:
        case Bounded():
            return replace(options_of(trigger.trigger), start=trigger.start, end=trigger.end)
        case Rolled():
            calendar = cast("Calendar", trigger.calendar)
            return replace(options_of(trigger.trigger), calendar=calendar, on_holiday=trigger.roll.value)
        case Cron():
            return TriggerOptions(cron=trigger.expression, tz=trigger.tz, gap=trigger.gap, fold=trigger.fold)
        case Every():
            return TriggerOptions(
                every=trigger.period, anchor=None if trigger.anchor == EPOCH else trigger.anchor
            )
        case RRule():
            return TriggerOptions(
                rrule=trigger.rule,
                dtstart=trigger.dtstart,
                tz=trigger.tz,
                exdates=trigger.exdates,
                rdates=trigger.rdates,
            )
        case Instants():
            return TriggerOptions(at=trigger.moments)
        case _:
            raise InvalidArgument("trigger", trigger, "one that options can make")


def changed_when(stored: TriggerOptions, said: GivenOptions) -> TriggerOptions:
    """The same options with some of them changed. A trigger of another kind keeps of the old one what both
    kinds know: bounds, the calendar, and a zone where both have one."""
    defaults: dict[str, Any] = {each.name: each.default for each in fields(TriggerOptions)}
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


def changed_policies(name: str, stored: Policies, said: GivenOptions) -> Policies:
    """The same options with some of them changed. Of a window the place in it is kept, not its length."""
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


def _walls(when: TriggerOptions, name: str) -> tuple[datetime, ...]:
    own = zone(when.tz)
    moments: tuple[datetime, ...] = getattr(when, name)
    return tuple(each.astimezone(own).replace(tzinfo=None) for each in moments)
