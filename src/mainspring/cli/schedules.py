"""`schedules`: list and show them, their history and next fires; `next`: the fires of any trigger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

import click

from mainspring.admin.schedules.versions import Step, VersionView, step_in_words, steps
from mainspring.admin.views import ScheduleDetail, ScheduleView, to_json, trigger_view
from mainspring.admin.words import in_words, ledger_reason
from mainspring.cli.backfills import go_on
from mainspring.cli.options import Whole, json_option, store_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, fields, table, when
from mainspring.cli.schedule_orders import (
    apply_command,
    create,
    delete,
    edit,
    pause,
    plan_command,
    resume,
    revert,
    skip,
    trigger,
)
from mainspring.cli.session import Access
from mainspring.clock import SystemClock
from mainspring.duration import duration
from mainspring.errors import shown
from mainspring.model.schedule import Schedule, Slot
from mainspring.tasks.checks import valid_name
from mainspring.triggers.cron import Cron
from mainspring.triggers.intervals import EPOCH, Every
from mainspring.triggers.rrule import RRule
from mainspring.triggers.slots import UpcomingSlot, upcoming_slots
from mainspring.triggers.trigger import Trigger
from mainspring.triggers.zones import read_instant as instant
from mainspring.triggers.zones import read_wall_or_instant, zone

MOST_FIRES = 1000


@click.group()
def schedules() -> None:
    """List, make, change and pause schedules; their history."""


for command in (
    create,
    edit,
    revert,
    plan_command,
    apply_command,
    pause,
    resume,
    trigger,
    skip,
    go_on,
    delete,
):
    schedules.add_command(command)


@schedules.command("list")
@store_options
def list_schedules(access: Access, as_json: bool) -> None:
    """List schedules by name."""
    found = access.ask(lambda admin: admin.schedules.aall())
    if as_json:
        document([ScheduleView.of(each) for each in found])
    else:
        table(
            ["NAME", "TASK", "TRIGGER", "QUEUE", "STATE", "NEXT"],
            map(_row, found),
            none=f"no schedules in {access.where()}",
        )


@schedules.command()
@click.argument("name")
@store_options
def show(name: str, access: Access, as_json: bool) -> None:
    """Show a schedule, its last slots and next fires."""
    found = access.ask(lambda admin: admin.schedules.aget(name))
    if as_json:
        document(ScheduleDetail.of(found.schedule, slots=found.slots, fires=found.fires))
        return
    view = to_json(ScheduleView.of(found.schedule))
    view["trigger"] = in_words(found.schedule.trigger)
    fields((key.replace("_", " "), value) for key, value in view.items())
    click.echo()
    titles = ["SLOT", "DISPOSITION", "JOB", "DECIDED AT", "REASON"]
    table(titles, map(_slot_row, found.slots), none="no slots yet")
    click.echo()
    for moment in found.fires or ():
        click.echo(f"next  {when(moment)}")


@schedules.command("next")
@click.argument("name")
@click.option(
    "-n", "--count", type=Whole(1, MOST_FIRES), default=5, show_default=True, help="How many fires to show."
)
@store_options
def next_(name: str, count: int, access: Access, as_json: bool) -> None:
    """Show when a schedule fires next."""
    found = access.ask(lambda admin: admin.schedules.aget(name, slots=0, fires=count))
    if as_json:
        document(found.fires)
        return
    if found.fires is None:
        raise click.ClickException(f"this version cannot read its trigger: {shown(found.schedule.trigger)}")
    own = _zone(found.schedule.trigger)
    rows = [(when(each), f"{each.astimezone(own):%a %Y-%m-%d %H:%M:%S %Z}") for each in found.fires]
    table(["UTC", own.key], rows, none="it does not fire again")


@schedules.command()
@click.argument("name")
@store_options
def history(name: str, access: Access, as_json: bool) -> None:
    """Show every version: who changed what, and when."""
    found = steps(access.ask(lambda admin: admin.schedules.aversions(name)))
    if as_json:
        document([VersionView.of(each) for each in found])
    else:
        titles = ["VERSION", "AT", "BY", "CHANGE", "NOTE"]
        table(titles, map(_step_row, found), none="no versions on record")


def _zone(trigger: str) -> ZoneInfo:
    match trigger_view(trigger):
        case {"tz": str() as name}:
            return zone(name)
        case _:
            return zone("UTC")


def _row(schedule: Schedule) -> Sequence[object]:
    return (
        schedule.name,
        schedule.task,
        in_words(schedule.trigger),
        schedule.queue,
        "active" if schedule.paused_at is None else "paused",
        when(schedule.next_at),
    )


def _slot_row(slot: Slot) -> Sequence[object]:
    return when(slot.slot_at), slot.disposition, slot.job_id, when(slot.decided_at), ledger_reason(slot)


def _step_row(step: Step) -> Sequence[object]:
    version = step.version
    return version.version, when(version.changed_at), version.author, step_in_words(step), version.note


@click.command("next")
@click.argument("expression", required=False)
@click.option("--every", metavar="DURATION", help="An interval instead of a cron expression: 90m.")
@click.option("--anchor", metavar="ISO", help="An instant the interval counts from.")
@click.option("--rrule", metavar="RULE", help="An RFC 5545 rule instead: FREQ=MONTHLY;BYDAY=-1FR.")
@click.option("--dtstart", metavar="ISO", help="The start of the rule; local time if it has no offset.")
@click.option(
    "--tz", metavar="ZONE", default="UTC", show_default=True, help="The zone, such as Europe/Berlin."
)
@click.option("--gap", metavar="shift|skip", help="Local times that do not exist; default: shift.")
@click.option("--fold", metavar="first|second|both", help="Local times that come twice; default: first.")
@click.option("--name", type=a_name, help="The schedule's name, which H in an expression is hashed from.")
@click.option("--after", metavar="ISO", help="Only fires after this instant; default: now.")
@click.option(
    "-n", "--count", type=Whole(1, MOST_FIRES), default=5, show_default=True, help="How many fires to show."
)
@json_option
def next_fires(*, tz: str, after: str | None, count: int, as_json: bool, **trigger: str | None) -> None:
    """Show when a cron expression, interval or rule fires.

    It needs no database. Write -- before an expression that starts with a dash.
    """
    start = SystemClock().now() if after is None else instant(after, "after")
    found = upcoming_slots(_typed_trigger(tz, **trigger), start, count, tz)
    if as_json:
        document({"fires": [_fire_view(fire) for fire in found]})
        return
    rows = [(when(fire.at), f"{fire.local:%a %Y-%m-%d %H:%M:%S %Z}", fire.note) for fire in found]
    table(["UTC", tz, "NOTE"], rows, none="it does not fire again")


def _typed_trigger(
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
        _only("with a cron expression", gap=gap, fold=fold, name=name)
        _only("with --every", anchor=anchor)
        if dtstart is None:
            raise click.UsageError("--rrule: expected with --dtstart")
        return RRule(rrule, read_wall_or_instant(dtstart, "dtstart"), tz)
    _only("with --rrule", dtstart=dtstart)
    if every is not None:
        _only("with a cron expression", gap=gap, fold=fold, name=name)
        return Every(duration(every, "every"), EPOCH if anchor is None else instant(anchor, "anchor"))
    _only("with --every", anchor=anchor)
    key = None if name is None else valid_name(name, "schedule.name")
    rules: dict[str, Any] = {
        option: value for option, value in (("gap", gap), ("fold", fold)) if value is not None
    }
    return Cron(expression or "", tz, key=key, **rules)


def _only(needs: str, **options: str | None) -> None:
    for option, value in options.items():
        if value is not None:
            raise click.UsageError(f"--{option}: expected only {needs}")


def _fire_view(fire: UpcomingSlot) -> dict[str, str | None]:
    at = fire.at.replace(tzinfo=None).isoformat()
    return {"at": f"{at}Z", "local": fire.local.isoformat(), "note": fire.note}
