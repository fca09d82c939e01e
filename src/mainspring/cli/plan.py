"""`schedules plan` and `schedules apply`: what an app's schedules change in the store."""

from __future__ import annotations

from collections import Counter

import click

from mainspring.admin.schedules.plan import MOST_NAMED, Action, Planned, PlannedView, dropped_sentences
from mainspring.admin.words import moment
from mainspring.cli.author import author_option
from mainspring.cli.options import app_argument, json_option, settings_options
from mainspring.cli.output import document, printable, say, table
from mainspring.cli.session import Access, with_admin

MOST_SHOWN = 100
"""Lines of a table: an app may declare a hundred thousand schedules."""


@click.command("plan")
@app_argument()
@settings_options
@json_option
def plan_command(access: Access, as_json: bool) -> None:
    """What `apply` would add, change and remove; nothing is written."""
    app = access.load()
    show(with_admin(app, lambda admin: admin.schedules.aplan()), as_json=as_json)


@click.command("apply")
@app_argument()
@click.option("--prune", is_flag=True, help="Also delete what code declared once and does not any more.")
@author_option
@settings_options
@json_option
def apply_command(access: Access, prune: bool, author: str, as_json: bool) -> None:
    """Write the app's schedules; what somebody edited at run time stays."""
    app = access.load()
    found = with_admin(app, lambda admin: admin.schedules.aapply(prune=prune), by=author)
    show(found, as_json=as_json)
    for sentence in dropped_sentences(found):
        say(f"Warning: {printable(sentence)}")
    left = [each.name for each in found if each.action is Action.REMOVE]
    if left and not prune:
        told = ", ".join(left[:MOST_NAMED])
        more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        say(f"still on record, and firing: {told}{more}; --prune deletes them")


def show(planned: list[Planned], *, as_json: bool) -> None:
    """A plan, as a table or a document."""
    if as_json:
        document([PlannedView.of(each) for each in planned])
        return
    shown = planned
    if len(planned) > MOST_SHOWN:
        # What stays as it is goes last, and what does not fit is counted.
        shown = sorted(planned, key=lambda each: each.action is Action.SAME)[:MOST_SHOWN]
    rows = [(each.action.value, each.name, _changes(each), _fires(each)) for each in shown]
    table(["ACTION", "NAME", "CHANGES", "NEXT"], rows, none="no schedules declared, and none on record")
    if len(planned) > MOST_SHOWN:
        counts = Counter(each.action for each in planned)
        of_each = ", ".join(f"{action} {counts[action]}" for action in Action if counts[action])
        say(f"{len(planned)} schedules in all: {of_each}; --json lists each")


def _changes(planned: Planned) -> str:
    changes = ", ".join(f"{each.field} {each.was} -> {each.now}" for each in planned.differences)
    if planned.action is Action.KEEP:
        advice = f"`schedules hand-back {planned.name}` lets code have it"
        return printable(f"edited at run time, so it stays ({advice}); code says: {changes}")
    return printable(changes) or "-"


def _fires(planned: Planned) -> str:
    return ", ".join(moment(each) for each in planned.next_fires) or "-"
