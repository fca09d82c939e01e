"""Schedules as users declare them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mainspring.declare import payload
from mainspring.declare.names import valid_name
from mainspring.declare.options import valid_priority
from mainspring.declare.task import Task
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Misfire, NewSchedule
from mainspring.trigger.base import Trigger
from mainspring.trigger.cron import Cron
from mainspring.trigger.interval import Every


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleDeclaration:
    """A task with a trigger and policies: checked, and not yet in any store."""

    name: str
    task: Task[..., object]
    trigger: Trigger
    payload: bytes
    misfire: Misfire
    catch_up: timedelta
    queue: str
    priority: int

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
            misfire=self.misfire,
            catch_up=self.catch_up,
            next_at=next_at,
            following_at=None if next_at is None else self.trigger.next_after(next_at),
        )


def declare_schedule(
    name: str,
    task: Task[..., object],
    *,
    cron: str | None = None,
    every: Duration | None = None,
    tz: str = "UTC",
    args: Sequence[object] = (),
    kwargs: Mapping[str, object] | None = None,
    misfire: Misfire | str = Misfire.LATEST,
    catch_up: Duration = "1d",
    queue: str | None = None,
    priority: int | None = None,
) -> ScheduleDeclaration:
    """Check a schedule: exactly one of `cron` and `every`, and arguments that fit the task."""
    named = dict(kwargs or {})
    task.signature.check(args, named)
    return ScheduleDeclaration(
        name=valid_name(name, "schedule.name"),
        task=task,
        trigger=_trigger(cron, every, tz),
        payload=payload.encode(args, named, field=task.name),
        misfire=_misfire(misfire),
        catch_up=duration(catch_up, "schedule.catch_up", least=timedelta()),
        queue=task.queue if queue is None else valid_name(queue, "schedule.queue"),
        priority=task.priority if priority is None else valid_priority(priority, "schedule.priority"),
    )


def _trigger(cron: str | None, every: Duration | None, tz: str) -> Trigger:
    if cron is not None and every is None:
        return Cron(cron, tz)
    if cron is not None or every is None:
        raise InvalidArgument("schedule", {"cron": cron, "every": every}, "exactly one of cron and every")
    if tz != "UTC":
        raise InvalidArgument("tz", tz, "none: an interval counts real time, the same in every zone")
    return Every(duration(every, "every"))


def _misfire(policy: Misfire | str) -> Misfire:
    try:
        return Misfire(policy)
    except ValueError:
        raise InvalidArgument("schedule.misfire", policy, f"one of {', '.join(Misfire)}") from None
