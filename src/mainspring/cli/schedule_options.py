"""Every option of a schedule, as `create` and `edit` take them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import click

from mainspring.cli.arguments import keywords, positional
from mainspring.cli.options import Whole, seconds_or_text

_DURATIONS = ("every", "catch_up", "window", "jitter", "expect_start_within", "expect_finish_by")
_FLAGS: Sequence[tuple[str, str, Whole | None, str]] = (
    ("--cron", "EXPR", None, "A cron expression: '30 2 * * *'."),
    ("--every", "DURATION", None, "An interval: 90m."),
    ("--rrule", "RULE", None, "An RFC 5545 rule, with --dtstart."),
    ("--tz", "ZONE", None, "The zone of --cron or --rrule, such as Europe/Berlin."),
    ("--gap", "shift|skip", None, "Local times that do not exist."),
    ("--fold", "first|second|both", None, "Local times that come twice."),
    ("--anchor", "ISO", None, "An instant that --every counts from."),
    ("--dtstart", "ISO", None, "The start of the rule; local time if it has no offset."),
    ("--start", "ISO", None, "No slots before this."),
    ("--end", "ISO", None, "No slots from this on."),
    ("--max-fires", "N", Whole(), "How many slots may fire in all."),
    ("--calendar", "NAME", None, "Business days, by the newest calendar on record of this name."),
    ("--on-holiday", "skip|next|previous", None, "What becomes of a slot on no business day."),
    ("--args", "JSON", None, "Positional arguments, as a JSON array."),
    ("--kwargs", "JSON", None, "Keyword arguments, as a JSON object."),
    ("--misfire", "latest|all|skip", None, "What becomes of slots nobody could fire in time."),
    ("--catch-up", "DURATION", None, "How old a missed slot may be."),
    ("--overlap", "POLICY", None, "While one is live: skip, queue_one, queue_all, allow, replace."),
    ("--allow", "N", Whole(), "At most so many live at once."),
    ("--window", "DURATION", None, "A place of its own in this time after each slot."),
    ("--jitter", "DURATION", None, "A random delay below this."),
    ("--expect-start-within", "DURATION", None, "Alert when a job has not started so long after its slot."),
    ("--expect-finish-by", "DURATION", None, "Alert when a job has not ended so long after its slot."),
    ("--queue", "QUEUE", None, "Another queue than the task's own."),
    ("--priority", "N", Whole(), "From -100 to 100; higher runs first."),
    ("--attempts", "N", Whole(), "How often a job of it is tried."),
)
_LISTS = (
    ("--at", "at", "An instant; may be given several times."),
    ("--exdate", "exdates", "An instant that --rrule leaves out; may be given several times."),
    ("--rdate", "rdates", "An instant besides those of --rrule; may be given several times."),
)
CLEARABLE = [flag[2:] for flag, *_ in _FLAGS[3:]] + ["exdates", "rdates"]


def schedule_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given each option by its name; None or nothing where it was not typed."""
    for flag, field, words in reversed(_LISTS):
        command = click.option(flag, field, multiple=True, metavar="ISO", help=words)(command)
    for flag, metavar, kind, words in reversed(_FLAGS):
        command = click.option(flag, metavar=metavar, type=kind, help=words)(command)
    return command


def said(typed: Mapping[str, object], cleared: Sequence[str] = ()) -> dict[str, object]:
    """What was typed, as the editor takes it: None for what is to be cleared."""
    found: dict[str, object] = {name: value for name, value in typed.items() if value not in (None, ())}
    for option in cleared:
        name = option.replace("-", "_")
        if name in found:
            raise click.UsageError(f"--clear {option}: expected without a value for it")
        found[name] = None
    for name in _DURATIONS:
        if isinstance(text := found.get(name), str):
            found[name] = seconds_or_text(text)
    if isinstance(text := found.get("args"), str):
        found["args"] = positional(text)
    if isinstance(text := found.get("kwargs"), str):
        found["kwargs"] = keywords(text)
    return found
