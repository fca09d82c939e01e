"""`schedules`: what runs by itself, and when."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

import click

from mainspring.admin.schedules.versions import Step, VersionView, step_in_words, steps
from mainspring.admin.views import ScheduleDetail, ScheduleView, to_json, trigger_view
from mainspring.admin.words import in_words, ledger_reason
from mainspring.cli.backfill import go_on
from mainspring.cli.control import delete, hand_back, pause, resume, skip, trigger
from mainspring.cli.editing import create, edit
from mainspring.cli.options import Whole, store_options
from mainspring.cli.output import document, fields, table, when
from mainspring.cli.plan import apply_command, plan_command
from mainspring.cli.session import Access
from mainspring.errors import shown
from mainspring.model.schedule import Schedule, Slot
from mainspring.trigger.zones import zone

MOST_FIRES = 1000


@click.group()
def schedules() -> None:
    """See what runs by itself and when, make, change and pause it, and read its history."""


for command in (
    create,
    edit,
    hand_back,
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
    """By name."""
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
    """One schedule, its last slots and its next fires."""
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
@click.option("-n", "--count", type=Whole(1, MOST_FIRES), default=5, show_default=True)
@store_options
def next_(name: str, count: int, access: Access, as_json: bool) -> None:
    """When it fires next, in UTC and in its own zone."""
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
    """Every version of a schedule: who changed what, and when; oldest first."""
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
