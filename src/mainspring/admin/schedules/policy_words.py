"""The policies of a schedule in sentences."""

from __future__ import annotations

from typing import assert_never

from mainspring.duration import format_duration
from mainspring.model.schedule import Misfire, Overlap, Schedule
from mainspring.model.value import Value
from mainspring.tasks.schedule import options_of
from mainspring.triggers.trigger import Trigger

_GAP = {
    "shift": "A local time that the clocks skip is moved to the first one after it.",
    "skip": "A local time that the clocks skip has no slot.",
}
_FOLD = {
    "first": "A local time that comes twice has its slot the first time.",
    "second": "A local time that comes twice has its slot the second time.",
    "both": "A local time that comes twice has a slot each time.",
}
_HOLIDAY = {
    "skip": "is left out",
    "next": "moves to the next one",
    "previous": "moves to the one before",
}


class Policy(Value, frozen=True, kw_only=True):
    """One of them."""

    name: str
    value: str
    sentence: str


def policies(schedule: Schedule, trigger: Trigger | None) -> tuple[Policy, ...]:
    """All that have a say, the most asked-for first. Without a trigger, but for those of the trigger."""
    found = [
        Policy(name="misfire", value=schedule.misfire.value, sentence=_misfire(schedule)),
        Policy(name="overlap", value=_overlap_value(schedule), sentence=_overlap(schedule)),
        Policy(name="attempts", value=str(schedule.max_attempts), sentence=_attempts(schedule)),
    ]
    if schedule.offset or schedule.jitter:
        found.append(Policy(name="delay", value=_delay_value(schedule), sentence=_delay(schedule)))
    if schedule.max_fires is not None:
        left = schedule.fires_left or 0
        found.append(
            Policy(
                name="max_fires",
                value=str(schedule.max_fires),
                sentence=f"It fires {schedule.max_fires:,} times in all; {left:,} are left.",
            )
        )
    if schedule.expires is not None:
        within = format_duration(schedule.expires)
        found.append(
            Policy(
                name="expires",
                value=within,
                sentence=f"A job that has not succeeded {within} after its slot is not tried any more.",
            )
        )
    return (*found, *([] if trigger is None else _of_trigger(trigger)))


def _misfire(schedule: Schedule) -> str:
    bound = (
        "" if schedule.catch_up is None else f", if it is no older than {format_duration(schedule.catch_up)}"
    )
    match schedule.misfire:
        case Misfire.LATEST:
            return f"Of slots that nobody could fire in time, the newest makes one job{bound}."
        case Misfire.ALL:
            return (
                f"Every slot that nobody could fire in time makes a job{bound}; "
                "these jobs wait for each other."
            )
        case Misfire.SKIP:
            return "Slots that nobody could fire in time make no job."
        case _:
            assert_never(schedule.misfire)


def _overlap_value(schedule: Schedule) -> str:
    limit = f" {schedule.overlap_limit}" if schedule.overlap is Overlap.ALLOW else ""
    return f"{schedule.overlap.value}{limit}"


def _overlap(schedule: Schedule) -> str:
    match schedule.overlap:
        case Overlap.SKIP:
            return "A slot that comes while its last job is live makes none."
        case Overlap.QUEUE_ONE:
            return "A slot that comes while its last job is live makes one that waits; no second one waits."
        case Overlap.QUEUE_ALL:
            return "A slot that comes while earlier jobs are live makes one that waits for them."
        case Overlap.ALLOW:
            return f"At most {schedule.overlap_limit} of its jobs are live at once."
        case Overlap.REPLACE:
            return "A slot that comes while its last job is live cancels that one."
        case _:
            assert_never(schedule.overlap)


def _attempts(schedule: Schedule) -> str:
    if schedule.max_attempts == 1:
        return "A job that fails is not tried again."
    return f"A job is tried {schedule.max_attempts} times before it is a dead letter."


def _delay_value(schedule: Schedule) -> str:
    parts = [f"+{format_duration(schedule.offset)}"] if schedule.offset else []
    return " ".join([*parts, f"±{format_duration(schedule.jitter)}"]) if schedule.jitter else parts[0]


def _delay(schedule: Schedule) -> str:
    parts = []
    if schedule.offset:
        parts.append(f"Its place in its window is {format_duration(schedule.offset)} after each slot.")
    if schedule.jitter:
        parts.append(f"A random delay below {format_duration(schedule.jitter)} is added each time.")
    return " ".join(parts)


def _of_trigger(trigger: Trigger) -> list[Policy]:
    when = options_of(trigger)
    found = []
    if when.cron is not None and when.tz != "UTC":
        found.append(Policy(name="gap", value=when.gap, sentence=_GAP[when.gap]))
        found.append(Policy(name="fold", value=when.fold, sentence=_FOLD[when.fold]))
    if when.calendar is not None:
        roll = when.on_holiday or "skip"
        found.append(
            Policy(
                name="calendar",
                value=f"{when.calendar.name}, {roll}",
                sentence=f"A slot on no business day of {when.calendar.name} {_HOLIDAY[roll]}.",
            )
        )
    for name, edge, verb in (("start", when.start, "begins"), ("end", when.end, "ends")):
        if edge is not None:
            found.append(Policy(name=name, value=f"{edge:%Y-%m-%d %H:%M}Z", sentence=f"It {verb} then."))
    return found
