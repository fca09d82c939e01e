"""A schedule that a user creates or changes: its options as plain values, its task, and the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Self

from mainspring.admin.schedules.versions import Difference
from mainspring.admin.views import FireView, call_view, iso
from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument
from mainspring.model.job import DEFAULT_QUEUE
from mainspring.model.schedule import NewSchedule, Overlap, Schedule
from mainspring.model.value import Value
from mainspring.tasks import payload
from mainspring.tasks.checks import valid_attempts, valid_name, valid_priority
from mainspring.tasks.registry import Registry
from mainspring.tasks.retry import DEFAULT, Retry
from mainspring.tasks.schedule import GivenOptions, beginning, options_of
from mainspring.tasks.schedule_options import (
    KIND_OPTIONS,
    KINDS,
    OPTIONS_OF,
    WHEN_OPTIONS,
    Policies,
    PolicyOptions,
)
from mainspring.triggers.calendars import Calendar
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.slots import UpcomingSlot, upcoming_slots
from mainspring.triggers.trigger import Trigger
from mainspring.triggers.zones import read_instant, read_wall_or_instant

FIRES_SHOWN = 3
NO_BUSINESS_DAY = "skipped: no business day"
POLICY_OPTIONS = tuple(each.name for each in fields(PolicyOptions))
CALL_OPTIONS = ("task", "args", "kwargs", "queue", "priority", "attempts")
OPTIONS = frozenset((*WHEN_OPTIONS, *POLICY_OPTIONS, *CALL_OPTIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """All values of a schedule, with its trigger decoded."""

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
        """The draft of a stored schedule."""
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
        """The schedule in the form of the store."""
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
        """The time zone of its slots; UTC if they follow no zone."""
        when = options_of(self.trigger)
        if when.cron is None and when.rrule is None and when.calendar is not None:
            return when.calendar.tz
        return when.tz

    def facts(self) -> dict[str, object]:
        """The options by name; None if an option does not apply."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Callee:
    """A task's name and defaults. Without `check` the parameters of the task are not known."""

    name: str
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    attempts: int = DEFAULT.attempts
    retry: Retry = DEFAULT
    check: Callable[[Sequence[object], Mapping[str, object]], None] | None = None
    """The check of the task itself: a target checks more than names and types."""

    @classmethod
    def named(cls, name: object, registry: Registry | None) -> Callee:
        """The task of that name; UnknownTask if there is a registry without this task."""
        valid = valid_name(name, "schedule.task")  # type: ignore[arg-type]  # checked there
        if registry is None:
            return cls(name=valid)
        task = registry.get(valid)
        return cls(
            name=task.name,
            queue=task.queue,
            priority=task.priority,
            attempts=task.attempts,
            retry=task.retry,
            check=task.check,
        )

    def payload(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """The payload of a call with these arguments, checked if the parameters of the task are known."""
        if self.check is not None:
            self.check(args, kwargs)
        return payload.encode(args, kwargs, field=self.name)

    def option(self, name: str, said: object) -> object:
        """The queue, priority or attempts: the given value, or the task's own if the given value is None."""
        match name:
            case _ if said is None:
                return getattr(self, name)
            case "queue":
                return valid_name(said, "schedule.queue")  # type: ignore[arg-type]  # checked there
            case "priority":
                return valid_priority(said, "schedule.priority")  # type: ignore[arg-type]  # checked there
            case _:
                return valid_attempts(said, "schedule.attempts")  # type: ignore[arg-type]  # checked there


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The given options, grouped by their reader. Options that were not given are absent."""

    when: GivenOptions
    """The calendar is still given by name."""
    policies: GivenOptions
    call: GivenOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of creating or changing a schedule, or of a dry run."""

    name: str
    created: bool
    dry_run: bool
    draft: Draft
    version: int
    fires: tuple[UpcomingSlot, ...]
    differences: tuple[Difference, ...] = ()
    """The changed options. If there are none, nothing was written."""
    paused: bool = False

    @property
    def effect(self) -> str:
        """The effect in one word."""
        return "created" if self.created else "changed" if self.differences else "none"


def read(given: Mapping[str, object]) -> Wishes:
    """Group the options and parse those that are text. None means the default of an option."""
    for name in given:
        if name not in OPTIONS:
            raise InvalidArgument("schedule", name, f"only options it has ({', '.join(sorted(OPTIONS))})")
    read = {
        name: value if value is None or name not in _READERS else _READERS[name](value, name)
        for name, value in given.items()
    }
    return Wishes(
        when=_of(WHEN_OPTIONS, read), policies=_of(POLICY_OPTIONS, read), call=_of(CALL_OPTIONS, read)
    )


def changes(before: Draft, after: Draft) -> tuple[Difference, ...]:
    """The options that differ."""
    old, new = before.facts(), after.facts()
    return tuple(
        Difference(field=name, was=_plain(old.get(name)), now=_plain(new.get(name)))
        for name in dict.fromkeys((*new, *old))
        if old.get(name) != new.get(name)
    )


def upcoming(draft: Draft, now: datetime) -> tuple[UpcomingSlot, ...]:
    """Its next slots, in UTC and in its own time zone, each with a note if it is unusual."""
    return tuple(
        replace(fire, note=NO_BUSINESS_DAY) if is_skipped(draft.trigger, fire.at) else fire
        for fire in upcoming_slots(draft.trigger, now, FIRES_SHOWN, draft.tz())
    )


def draft_view(draft: Draft) -> dict[str, Any]:
    """The options of a draft, for JSON."""
    return {name: _plain(value) for name, value in draft.facts().items()}


class WrittenView(Value, frozen=True, kw_only=True):
    """The result of creating or changing a schedule, as programs read it."""

    name: str
    effect: str
    dry_run: bool
    version: int
    paused: bool
    differences: tuple[Difference, ...]
    schedule: dict[str, Any]
    """The options by name."""
    fires: tuple[FireView, ...]

    @classmethod
    def of(cls, written: Written) -> Self:
        """Of such a result."""
        return cls(
            name=written.name,
            effect=written.effect,
            dry_run=written.dry_run,
            version=written.version,
            paused=written.paused,
            differences=written.differences,
            schedule=draft_view(written.draft),
            fires=tuple(FireView.of(each) for each in written.fires),
        )


def _moment(value: object, field: str) -> object:
    return value if isinstance(value, datetime) else read_instant(value, field)  # type: ignore[arg-type]  # checked there


def _wall(value: object, field: str) -> object:
    return value if isinstance(value, datetime) else read_wall_or_instant(value, field)  # type: ignore[arg-type]  # checked there


def _moments(value: object, field: str) -> object:
    return tuple(_moment(each, field) for each in (value if isinstance(value, list | tuple) else (value,)))


def _walls(value: object, field: str) -> object:
    return tuple(_wall(each, field) for each in (value if isinstance(value, list | tuple) else (value,)))


def _array(value: object, field: str) -> object:
    if not isinstance(value, list | tuple):
        raise InvalidArgument(f"schedule.{field}", value, "a JSON array")
    return list(value)


def _object(value: object, field: str) -> object:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for each in value):
        raise InvalidArgument(f"schedule.{field}", value, "a JSON object")
    return dict(value)


_READERS: dict[str, Callable[[object, str], object]] = {
    "at": _moments,
    "anchor": _moment,
    "dtstart": _wall,
    "exdates": _walls,
    "rdates": _walls,
    "start": _moment,
    "end": _moment,
    "args": _array,
    "kwargs": _object,
}


def _of(names: Iterable[str], given: GivenOptions) -> GivenOptions:
    return {name: given[name] for name in names if name in given}


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
