"""Times, durations, triggers and errors as text for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.admin.views import trigger_view
from mainspring.duration import format_duration
from mainspring.model.job import Failure
from mainspring.model.schedule import Disposition, Period, Slot

_SHOWN = 200
_SECOND, _MINUTE, _HOUR, _DAY = (timedelta(seconds=each) for each in (1, 60, 3600, 86400))


def moment(value: datetime) -> str:
    """A time in UTC, to the second, or to the millisecond if it has a fraction."""
    value = value.astimezone(UTC)
    fraction = f".{value.microsecond // 1000:03}" if value.microsecond >= 1000 else ""
    return f"{value:%Y-%m-%d %H:%M:%S}{fraction}Z"


def length(value: timedelta) -> str:
    """A duration in whole seconds, from one hour on in minutes, from two days on in hours."""
    unit = _SECOND if value < _HOUR else _MINUTE if value < 2 * _DAY else _HOUR
    return "less than 1s" if value < _SECOND else format_duration(value // unit * unit)


def combined(period: Period | None) -> str:
    """The missed slots that a job covers in addition to its own; empty if there are none."""
    if period is None or period.since is None or not period.missed:
        return ""
    most = "at least " if period.at_least else ""
    slots = f"{period.missed:,} missed slot" + ("" if period.missed == 1 else "s")
    return f"It stands for {most}{slots} from {moment(period.since)} on, too."


def in_words(trigger: str) -> str:
    """A stored trigger, as people write it."""
    match trigger_view(trigger):
        case {"every": int() | float() as seconds}:
            return f"every {format_duration(timedelta(seconds=seconds))}"
        case {"cron": expression, "tz": tz}:
            return f"{expression} ({tz})"
        case _:
            return trigger


def ledger_reason(slot: Slot) -> str | None:
    """The reason of a ledger row, in a few words; None if the slot fired in the usual way."""
    parts = []
    if slot.reason is not None:
        was = "was skipped: " if slot.disposition is Disposition.BACKFILLED else ""
        parts.append(was + slot.reason + (f" with job {slot.blocker}" if slot.blocker is not None else ""))
    if slot.since is not None:
        parts.append(f"{'coalesced' if slot.reason is None else 'with those'} since {moment(slot.since)}")
    if slot.note is not None:
        parts.append(slot.note)
    return ", ".join(parts) or None


def error(failure: Failure) -> str:
    """The error on one line of bounded length."""
    text = " ".join(f"{failure.type}: {failure.message}".split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
