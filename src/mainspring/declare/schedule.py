"""Schedules as users declare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.calendars import Calendar
from mainspring.declare import payload
from mainspring.declare.names import valid_name
from mainspring.declare.options import valid_priority
from mainspring.declare.policies import Policies, policies
from mainspring.declare.task import Task
from mainspring.declare.when import When
from mainspring.duration import Duration
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import NewSchedule
from mainspring.trigger.base import Trigger


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
        """What the store is told: with the first two slots after now, should the trigger be new to it."""
        next_at = self.trigger.next_after(now)
        return NewSchedule(
            name=self.name,
            task=self.task.name,
            trigger=self.trigger.encode(),
            payload=self.payload,
            queue=self.queue,
            priority=self.priority,
            max_attempts=self.task.attempts,
            misfire=self.policies.misfire,
            # A slot that is past its deadline is missed for good: there is nothing in catching it up.
            catch_up=_sooner(self.policies.catch_up, self.task.expires),
            overlap=self.policies.overlap,
            overlap_limit=self.policies.overlap_limit,
            offset=self.policies.offset,
            jitter=self.policies.jitter,
            max_fires=self.policies.max_fires,
            expires=self.task.expires,
            next_at=next_at,
            following_at=None if next_at is None else self.trigger.next_after(next_at),
        )


def _sooner(one: timedelta, other: timedelta | None) -> timedelta:
    return one if other is None else min(one, other)


def declare_schedule(
    name: str,
    task: Task[..., object],
    *,
    cron: str | None = None,
    every: Duration | None = None,
    rrule: str | None = None,
    at: datetime | Sequence[datetime] | None = None,
    tz: str = "UTC",
    gap: str = "shift",
    fold: str = "first",
    anchor: datetime | None = None,
    dtstart: datetime | None = None,
    exdates: Sequence[datetime] = (),
    rdates: Sequence[datetime] = (),
    start: datetime | None = None,
    end: datetime | None = None,
    max_fires: int | None = None,
    calendar: Calendar | None = None,
    on_holiday: str | None = None,
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    misfire: str = "latest",
    catch_up: Duration = "1d",
    overlap: str | None = None,
    allow: int | None = None,
    window: Duration | None = None,
    jitter: Duration | None = None,
    queue: str | None = None,
    priority: int | None = None,
) -> ScheduleDeclaration:
    """Check a schedule: exactly one of `cron`, `every`, `rrule` and `at`, and arguments that fit the task.

    `gap` and `fold` say what a fixed hour means on the nights the clocks change. Slots from `start`
    on and before `end` count. `on_holiday` ("skip", "next", "previous") goes with a calendar. The
    policies are those of `Misfire` and `Overlap`; `window` gives the schedule a place of its own in it.
    """
    if not isinstance(task, Task):
        raise InvalidArgument("schedule.task", task, "a task: a function declared with @app.task")
    if task.expires_at is not None:
        raise InvalidArgument(
            "schedule.task", task.expires_at, "expires as a duration: each slot has its own deadline"
        )
    named = dict(kwargs or {})
    task.signature.check(args, named)
    when = When(
        cron=cron, every=every, rrule=rrule, at=at, tz=tz, gap=gap, fold=fold, anchor=anchor,
        dtstart=dtstart, exdates=exdates, rdates=rdates, start=start, end=end,
        calendar=calendar, on_holiday=on_holiday,
    )  # fmt: skip
    return ScheduleDeclaration(
        name=valid_name(name, "schedule.name"),
        task=task,
        trigger=when.trigger(valid_name(name, "schedule.name")),
        payload=payload.encode(args, named, field=task.name),
        policies=policies(
            name,
            misfire=misfire,
            catch_up=catch_up,
            overlap=overlap,
            allow=allow,
            window=window,
            jitter=jitter,
            max_fires=max_fires,
        ),
        queue=task.queue if queue is None else valid_name(queue, "schedule.queue"),
        priority=task.priority if priority is None else valid_priority(priority, "schedule.priority"),
        calendar=calendar,
    )
