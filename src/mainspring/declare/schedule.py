"""Schedules as users declare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from mainspring.calendars import Calendar
from mainspring.declare import payload
from mainspring.declare.names import valid_name
from mainspring.declare.options import valid_priority
from mainspring.declare.policies import Policies, PolicyOptions
from mainspring.declare.retry import DEFAULT, Retry
from mainspring.declare.task import Task
from mainspring.declare.when import WHEN_OPTIONS, When
from mainspring.declare.workflow_task import WorkflowTask
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import NewSchedule, Overlap
from mainspring.trigger.base import Trigger
from mainspring.trigger.preview import shortest_gap

_POLICIES = tuple(each.name for each in fields(Policies))


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
        return NewSchedule(
            name=self.name,
            task=self.task.name,
            payload=self.payload,
            queue=self.queue,
            priority=self.priority,
            max_attempts=attempts_of_slots(
                self.task.attempts, self.task.retry, self.trigger, self.policies.overlap
            ),
            gates=self.task.gates(self.queue, *payload.decode(self.payload)),
            expires=self.task.expires,
            **{each: getattr(self.policies, each) for each in _POLICIES}
            | {"catch_up": _sooner(self.policies.catch_up, self.task.expires)},
            **beginning(self.trigger, now),
        )


FEWEST_ATTEMPTS = 3
"""Of a slot's job, however soon the next slot comes: one failure that passes must not bury it."""


def attempts_of_slots(attempts: int, retry: Retry, trigger: Trigger, overlap: Overlap) -> int:
    """How often a slot's job is tried. Where nobody said how often, and a live job has slots skipped, no more
    than there is time for before the next slot: a job that waits for its next attempt is live."""
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
    """Check a schedule. The options are those of `When` and of `PolicyOptions`; `app.schedule` says
    what each means. The arguments must fit the task; of a workflow, what they leave out is filled from
    each slot."""
    if not isinstance(task, Task):
        raise InvalidArgument("schedule.task", task, "a task: a function declared with @app.task")
    if task.expires_at is not None:
        raise InvalidArgument(
            "schedule.task", task.expires_at, "expires as a duration: each slot has its own deadline"
        )
    when = When(**{each: options.pop(each) for each in WHEN_OPTIONS if each in options})
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
