"""`schedules`: what runs by itself, and when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import click

from mainspring.cli.options import store_options
from mainspring.cli.output import document, fields, table, when
from mainspring.cli.session import Access
from mainspring.duration import written
from mainspring.errors import shown
from mainspring.model.schedule import Schedule, Slot
from mainspring.ops.queries import Queries
from mainspring.ops.views import moments_view, schedule_view, slot_view, trigger_view
from mainspring.trigger.zones import zone

MOST_FIRES = 1000


@click.group()
def schedules() -> None:
    """List schedules, show their slots, and see when they fire next."""


@schedules.command("list")
@store_options
def list_schedules(access: Access, as_json: bool) -> None:
    """By name."""
    found = access.ask(lambda store, clock: Queries(store, clock).schedules())
    if as_json:
        document([schedule_view(each) for each in found])
    else:
        table(["NAME", "TASK", "TRIGGER", "QUEUE", "NEXT"], map(_row, found), none="no schedules")


@schedules.command()
@click.argument("name")
@store_options
def show(name: str, access: Access, as_json: bool) -> None:
    """One schedule, its last slots and its next fires."""
    found = access.ask(lambda store, clock: Queries(store, clock).schedule(name))
    view = schedule_view(found.schedule)
    if as_json:
        slots = [slot_view(each) for each in found.slots]
        document({**view, "slots": slots, "fires": moments_view(found.fires)})
        return
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
@click.option("-n", "--count", type=click.IntRange(1, MOST_FIRES), default=5, show_default=True)
@store_options
def next_(name: str, count: int, access: Access, as_json: bool) -> None:
    """When it fires next, in UTC and in its own zone."""
    found = access.ask(lambda store, clock: Queries(store, clock).schedule(name, slots=0, fires=count))
    if as_json:
        document(moments_view(found.fires))
        return
    if found.fires is None:
        raise click.ClickException(f"this version cannot read its trigger: {shown(found.schedule.trigger)}")
    own = _zone(found.schedule.trigger)
    rows = [(when(each), f"{each.astimezone(own):%a %Y-%m-%d %H:%M:%S %Z}") for each in found.fires]
    table(["UTC", own.key], rows, none="it does not fire again")


def in_words(trigger: str) -> str:
    """A stored trigger, as people write it."""
    match trigger_view(trigger):
        case {"every": int() | float() as seconds}:
            return f"every {written(timedelta(seconds=seconds))}"
        case {"cron": expression, "tz": tz}:
            return f"{expression} ({tz})"
        case _:
            return trigger


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
        when(schedule.next_at),
    )


def _slot_row(slot: Slot) -> Sequence[object]:
    return when(slot.slot_at), slot.disposition, slot.job_id, when(slot.decided_at), slot.reason
