"""`next`: when a trigger would fire, without a store."""

from __future__ import annotations

from typing import Any

import click

from mainspring.cli.options import Whole, json_option
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, table, when
from mainspring.clock import SystemClock
from mainspring.duration import duration
from mainspring.tasks.checks import valid_name
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import EPOCH, Every
from mainspring.triggers.rrule import RRule
from mainspring.triggers.slots import UpcomingSlot, upcoming_slots
from mainspring.triggers.trigger import Trigger
from mainspring.triggers.zones import read_instant, read_wall_or_instant

MOST_FIRES = 1000


@click.command("next")
@click.argument("expression", required=False)
@click.option("--every", metavar="DURATION", help="An interval instead of a cron expression: 90m.")
@click.option("--anchor", metavar="ISO", help="An instant the interval counts from.")
@click.option("--rrule", metavar="RULE", help="An RFC 5545 rule instead: FREQ=MONTHLY;BYDAY=-1FR.")
@click.option("--dtstart", metavar="ISO", help="The start of the rule; local time if it has no offset.")
@click.option("--tz", metavar="ZONE", default="UTC", show_default=True, help="Such as Europe/Berlin.")
@click.option("--gap", metavar="shift|skip", help="Local times that do not exist; shift if absent.")
@click.option("--fold", metavar="first|second|both", help="Local times that come twice; first if absent.")
@click.option("--name", type=a_name, help="The schedule's name, which H in an expression is hashed from.")
@click.option("--after", metavar="ISO", help="Strictly after this instant; now if absent.")
@click.option("-n", "--count", type=Whole(1, MOST_FIRES), default=5, show_default=True)
@json_option
def next_(*, tz: str, after: str | None, count: int, as_json: bool, **trigger: str | None) -> None:
    """When a cron EXPRESSION, an interval or a rule fires, in UTC and in a zone; needs no database.

    Write -- before an expression that starts with a dash.
    """
    start = SystemClock().now() if after is None else read_instant(after, "after")
    found = upcoming_slots(_trigger(tz, **trigger), start, count, tz)
    if as_json:
        document({"fires": [_view(fire) for fire in found]})
        return
    rows = [(when(fire.at), f"{fire.local:%a %Y-%m-%d %H:%M:%S %Z}", fire.note) for fire in found]
    table(["UTC", tz, "NOTE"], rows, none="it does not fire again")


def _trigger(
    tz: str,
    *,
    expression: str | None,
    every: str | None,
    anchor: str | None,
    rrule: str | None,
    dtstart: str | None,
    gap: str | None,
    fold: str | None,
    name: str | None,
) -> Trigger:
    if [expression, every, rrule].count(None) != 2:
        raise click.UsageError("expected one of a cron EXPRESSION, --every and --rrule")
    if rrule is not None:
        _refuse("with a cron expression", gap=gap, fold=fold, name=name)
        _refuse("with --every", anchor=anchor)
        if dtstart is None:
            raise click.UsageError("--rrule: expected with --dtstart")
        return RRule(rrule, read_wall_or_instant(dtstart, "dtstart"), tz)
    _refuse("with --rrule", dtstart=dtstart)
    if every is not None:
        _refuse("with a cron expression", gap=gap, fold=fold, name=name)
        return Every(duration(every, "every"), EPOCH if anchor is None else read_instant(anchor, "anchor"))
    _refuse("with --every", anchor=anchor)
    key = None if name is None else valid_name(name, "schedule.name")
    rules: dict[str, Any] = {
        option: value for option, value in (("gap", gap), ("fold", fold)) if value is not None
    }
    return Cron(expression or "", tz, key=key, **rules)


def _refuse(needs: str, **options: str | None) -> None:
    for option, value in options.items():
        if value is not None:
            raise click.UsageError(f"--{option}: expected only {needs}")


def _view(fire: UpcomingSlot) -> dict[str, str | None]:
    at = fire.at.replace(tzinfo=None).isoformat()
    return {"at": f"{at}Z", "local": fire.local.isoformat(), "note": fire.note}
