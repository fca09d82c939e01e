"""`backfill` and `backfills`: run past slots of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from mainspring.admin.admin import Admin
from mainspring.admin.backfills import (
    MOST_AT_ONCE,
    BackfillPlan,
    BackfillView,
    PlannedSlotView,
)
from mainspring.admin.views import to_json
from mainspring.cli.options import LARGEST_ID, Whole, author_option, moment, store_options
from mainspring.cli.output import document, fields, printable, say, table, when
from mainspring.cli.session import Access
from mainspring.model.schedule import Backfill, Reprocess

MOST_SHOWN = 50
BACKFILL_ID = Whole(1, LARGEST_ID)
max_active_option = click.option(
    "--max-active",
    type=Whole(1, MOST_AT_ONCE),
    metavar="N",
    help="Jobs at once. Default: as many as the schedule allows to overlap, else 1.",
)


@click.command()
@click.argument("name")
@click.option(
    "--from", "start", type=moment, metavar="ISO", required=True, help="The first moment of the range."
)
@click.option(
    "--to",
    "end",
    type=moment,
    metavar="ISO",
    required=True,
    help="The end of the range; slots at this moment are not in it.",
)
@click.option("--dry-run", is_flag=True, help="List the slots, and run nothing.")
@max_active_option
@click.option("--reverse", is_flag=True, help="The newest slot first.")
@click.option(
    "--reprocess",
    type=click.Choice([each.value for each in Reprocess]),
    default=Reprocess.NONE.value,
    show_default=True,
    help="Which slots that have had a job are run again.",
)
@author_option
@store_options
def backfill(
    name: str,
    start: datetime,
    end: datetime,
    dry_run: bool,
    max_active: int | None,
    reverse: bool,
    reprocess: str,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Run past slots of a schedule.

    These are slots that were missed or skipped and, with --reprocess, slots whose job has ended.
    """

    async def work(admin: Admin) -> tuple[BackfillPlan, Backfill | None]:
        plan = await admin.backfills.aplan(
            name,
            start=start,
            end=end,
            max_active=max_active,
            reverse=reverse,
            reprocess=Reprocess(reprocess),
        )
        begun = None if dry_run or not plan.to_run else await admin.backfills.astart(plan)
        return plan, begun

    _say(*access.ask(work, by=author), dry_run=dry_run, as_json=as_json)


@click.command("go-on")
@click.argument("name")
@click.option("--dry-run", is_flag=True, help="List the slots, and run nothing.")
@max_active_option
@author_option
@store_options
def go_on(
    name: str, dry_run: bool, max_active: int | None, author: str, access: Access, as_json: bool
) -> None:
    """Run the missed slots that the circuit breaker dropped.

    The oldest slot runs first.
    """

    async def work(admin: Admin) -> tuple[BackfillPlan, Backfill | None]:
        plan = await admin.backfills.aplan_left_out(name, max_active=max_active)
        begun = None if dry_run or not plan.to_run else await admin.backfills.ago_on(plan)
        return plan, begun

    _say(*access.ask(work, by=author), dry_run=dry_run, as_json=as_json)


@click.group()
def backfills() -> None:
    """Show how far backfills are, and stop them."""


@backfills.command("list")
@click.option("--limit", type=Whole(1, 1000), default=50, show_default=True, help="How many to list.")
@store_options
def list_backfills(limit: int, access: Access, as_json: bool) -> None:
    """List backfills, newest first."""
    found = access.ask(lambda admin: admin.backfills.anewest(limit=limit))
    if as_json:
        document([BackfillView.of(each) for each in found])
    else:
        titles = ["ID", "SCHEDULE", "FROM", "TO", "STATE", "SLOTS", "MADE", "LIVE", "BY"]
        table(titles, map(_row, found), none=f"no backfills in {access.where()}")


@backfills.command()
@click.argument("backfill_id", metavar="ID", type=BACKFILL_ID)
@store_options
def show(backfill_id: int, access: Access, as_json: bool) -> None:
    """Show how far a backfill is."""
    found = BackfillView.of(access.ask(lambda admin: admin.backfills.aget(backfill_id)))
    if as_json:
        document(found)
    else:
        fields((key.replace("_", " "), value) for key, value in to_json(found).items())


@backfills.command()
@click.argument("backfill_ids", metavar="ID...", type=BACKFILL_ID, nargs=-1, required=True)
@author_option
@store_options
def cancel(backfill_ids: tuple[int, ...], author: str, access: Access, as_json: bool) -> None:
    """Make no more jobs of backfills.

    The jobs that they have made go on; `jobs cancel` ends them.
    """
    access.each(
        backfill_ids,
        lambda admin, backfill_id: admin.backfills.acancel(backfill_id),
        by=author,
        said=lambda key, done: f"backfill {key} {'cancelled' if done else 'had ended; nothing was done'}",
        view=lambda backfill_id, done: {"id": backfill_id, "cancelled": done},
        as_json=as_json,
    )


def _say(plan: BackfillPlan, begun: Backfill | None, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        slots = [PlannedSlotView.of(each) for each in plan.slots]
        document({"backfill": None if begun is None else BackfillView.of(begun), "slots": slots})
    else:
        _tell(plan, begun, dry_run=dry_run)


def _tell(plan: BackfillPlan, begun: Backfill | None, *, dry_run: bool) -> None:
    rows = [
        (when(each.slot.slot_at), each.slot.version, "run" if each.run else "leave", each.why)
        for each in plan.slots[:MOST_SHOWN]
    ]
    table(["SLOT", "VERSION", "ACTION", "WHY"], rows, none="it has no slot in this range")
    more = len(plan.slots) - MOST_SHOWN
    if more > 0:
        say(f"and {more} more; --json lists all")
    run, left = len(plan.to_run), len(plan.slots) - len(plan.to_run)
    counted = f"{run} to run, {left} left alone, {plan.max_active} at a time"
    if begun is not None:
        say(printable(f"backfill {begun.id} of {plan.schedule}: {counted}"))
    else:
        say(f"{counted}; nothing was written" + ("" if dry_run else ": there is nothing to run"))


def _row(backfill: Backfill) -> Sequence[object]:
    return (
        backfill.id,
        backfill.schedule,
        when(backfill.start),
        when(backfill.end),
        backfill.state,
        backfill.slots,
        backfill.made,
        backfill.live,
        backfill.author,
    )
