"""`simulate`: what schedules would do, without doing it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import click

from mainspring.admin.admin import Admin
from mainspring.admin.simulation.load import Load, load, spread_in
from mainspring.admin.simulation.simulate import Horizon, Outage, Planned, Simulation, simulate
from mainspring.admin.simulation.views import (
    LoadView,
    SimulationView,
    counted,
    load_lines,
    notes,
    outcome_in_words,
)
from mainspring.app import Mainspring
from mainspring.cli.options import (
    Whole,
    app_option,
    json_option,
    length,
    moment,
    settings_options,
)
from mainspring.cli.output import document, say, table, when
from mainspring.cli.session import Access, with_admin
from mainspring.errors import NotFound
from mainspring.triggers.calendars import decode_calendar
from mainspring.triggers.codec import Calendars

MOST_SLOTS = 1_000_000


def outage(text: str) -> Outage:
    """Two moments with `..` between them."""
    first, dots, second = text.partition("..")
    if not dots:
        raise click.BadParameter(f"expected two moments with .. between them, got {text!r}")
    found = Outage(start=moment(first), end=moment(second))
    if found.end <= found.start:
        raise click.BadParameter("expected an end that is after the start")
    return found


@click.command("simulate")
@click.option("--from", "start", type=moment, metavar="ISO", required=True, help="The first moment.")
@click.option("--to", "end", type=moment, metavar="ISO", required=True, help="The end.")
@click.option(
    "--outage",
    "outages",
    type=outage,
    metavar="A..B",
    multiple=True,
    help="A time without a scheduler; may be given several times.",
)
@click.option("--schedule", "name", metavar="NAME", help="Only this schedule.")
@click.option("--assume-duration", "duration", type=length, metavar="DURATION", help="How long jobs run.")
@click.option("--limit", type=Whole(1, MOST_SLOTS), default=1000, show_default=True, help="How many to list.")
@click.option("--load", "as_load", is_flag=True, help="Jobs by minute instead of a list of slots.")
@click.option(
    "--window",
    type=length,
    default="15m",
    show_default=True,
    help="With --load: compare with schedules that are spread over this time.",
)
@click.option("--stored", is_flag=True, help="With -A: the schedules in the database, not the app's.")
@app_option(text="Simulate the schedules that this app declares.")
@settings_options
@json_option
def simulate_(
    start: datetime,
    end: datetime,
    outages: tuple[Outage, ...],
    name: str | None,
    duration: timedelta | None,
    limit: int,
    as_load: bool,
    window: timedelta,
    stored: bool,
    access: Access,
    as_json: bool,
) -> None:
    """List the slots of a period and what happens to each.

    With -A these are the schedules that the app declares, and no database is opened. Without -A, or with
    --stored, they are those in the database.
    """
    if end <= start:
        raise click.UsageError("--to: expected a moment after --from")
    if as_load and duration is not None:
        raise click.UsageError("--assume-duration: expected without --load, which leaves overlap out")
    app = access.load()
    found, calendars = _declared(app, start) if access.app is not None and not stored else _stored(app)
    chosen = _chosen(found, name)
    horizon = Horizon(
        start=start, end=end, outages=outages, breaker=app.settings.scheduler.breaker, duration=duration
    )
    if as_load:
        busy = load(chosen, horizon, calendars)
        spread = load(chosen, horizon, calendars, offset=lambda each: spread_in(each, window), peaks=1)
        _tell_load(busy, spread, window, as_json=as_json)
    else:
        done = simulate(chosen, horizon, calendars, limit=limit)
        _tell(done, notes(done, horizon, jitter=any(each.jitter for each in chosen)), as_json=as_json)


def _tell_load(busy: Load, spread: Load, window: timedelta, *, as_json: bool) -> None:
    if as_json:
        document(LoadView.of(busy, spread, window))
    else:
        click.echo("\n".join(load_lines(busy, spread, window)))


def _tell(done: Simulation, told: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        document(SimulationView.of(done, told))
        return
    rows = [(when(each.slot_at), each.schedule, outcome_in_words(each), each.note) for each in done.outcomes]
    table(["SLOT", "SCHEDULE", "FATE", "NOTE"], rows, none="no slots")
    for each in told:
        say(f"note: {each}")
    say(counted(done.outcomes))


def _declared(app: Mainspring, now: datetime) -> tuple[list[Planned], Calendars]:
    declared = app._registry.schedules.values()
    calendars = [each.calendar for each in declared if each.calendar is not None]
    return [each.new_schedule(now) for each in declared], {(c.name, c.version): c for c in calendars}


def _stored(app: Mainspring) -> tuple[list[Planned], Calendars]:
    async def read(admin: Admin) -> tuple[list[Planned], Calendars]:
        store = await admin.context.store()
        stored = {(c.name, c.version): decode_calendar(c.definition) for c in await store.calendars.all()}
        return list(await store.schedules.all()), stored

    return with_admin(app, read)


def _chosen(found: list[Planned], name: str | None) -> list[Planned]:
    chosen = [each for each in found if name in (None, each.name)]
    if name is not None and not chosen:
        raise NotFound("schedule", name)
    return chosen
