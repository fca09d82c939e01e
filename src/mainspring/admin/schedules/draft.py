"""A schedule as somebody wants it: checked, and not yet written."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from mainspring.admin.schedules.versions import Difference
from mainspring.admin.views import call_view, iso
from mainspring.duration import format_duration
from mainspring.model.schedule import NewSchedule, Overlap, Schedule
from mainspring.tasks.schedule import beginning, options_of
from mainspring.tasks.schedule_options import KIND_OPTIONS, KINDS, OPTIONS_OF, Policies
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.trigger import Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """Everything a schedule is, with its trigger read."""

    name: str
    task: str
    trigger: Trigger
    policies: Policies
    payload: bytes
    queue: str
    priority: int
    attempts: int

    @classmethod
    def of(cls, stored: Schedule, trigger: Trigger) -> Draft:
        """One that is on record."""
        return cls(
            name=stored.name,
            task=stored.task,
            trigger=trigger,
            policies=Policies(**{each.name: getattr(stored, each.name) for each in fields(Policies)}),
            payload=stored.payload,
            queue=stored.queue,
            priority=stored.priority,
            attempts=stored.max_attempts,
        )

    def new_schedule(self, now: datetime) -> NewSchedule:
        """What the store is told."""
        return NewSchedule(
            name=self.name,
            task=self.task,
            payload=self.payload,
            queue=self.queue,
            priority=self.priority,
            max_attempts=self.attempts,
            **asdict(self.policies),
            **beginning(self.trigger, now),
        )

    def tz(self) -> str:
        """The zone whose clocks its slots follow; UTC where they follow none."""
        when = options_of(self.trigger)
        if when.cron is None and when.rrule is None and when.calendar is not None:
            return when.calendar.tz
        return when.tz

    def facts(self) -> dict[str, object]:
        """By the names of the options; None where an option says nothing here."""
        when, policies = options_of(self.trigger), self.policies
        kind = next(each for each in KINDS if getattr(when, each) is not None)
        own = [each for each in KIND_OPTIONS if each in OPTIONS_OF[kind]]
        return {
            "task": self.task,
            **{each: getattr(when, each) for each in KINDS},
            **{each: getattr(when, each) or None if each in own else None for each in KIND_OPTIONS},
            "start": when.start,
            "end": when.end,
            "max_fires": policies.max_fires,
            "calendar": when.calendar,
            "on_holiday": when.on_holiday,
            **call_view(self.payload),
            "misfire": policies.misfire,
            "catch_up": policies.catch_up,
            "overlap": policies.overlap,
            "allow": policies.overlap_limit if policies.overlap is Overlap.ALLOW else None,
            "offset": policies.offset,
            "jitter": policies.jitter,
            "expect_start_within": policies.expect_start_within,
            "expect_finish_by": policies.expect_finish_by,
            "queue": self.queue,
            "priority": self.priority,
            "attempts": self.attempts,
        }


def draft_view(draft: Draft) -> dict[str, Any]:
    """Its facts, for JSON."""
    return {name: _plain(value) for name, value in draft.facts().items()}


def changes(before: Draft, after: Draft) -> tuple[Difference, ...]:
    """The options that are not the same."""
    old, new = before.facts(), after.facts()
    return tuple(
        Difference(field=name, was=_plain(old.get(name)), now=_plain(new.get(name)))
        for name in dict.fromkeys((*new, *old))
        if old.get(name) != new.get(name)
    )


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat() if value.tzinfo is None else iso(value.astimezone(UTC))
        case timedelta():
            return format_duration(value)
        case Enum():
            return value.value
        case Calendar():
            return f"{value.name}, version {value.version}"
        case tuple():
            return [_plain(each) for each in value]
        case _:
            return value
