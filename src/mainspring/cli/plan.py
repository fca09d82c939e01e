"""`schedules plan` and `schedules apply`: what an app's schedules change in the store."""

from __future__ import annotations

import click

from mainspring.cli.options import app_argument, json_option, settings_options
from mainspring.cli.output import document, printable, say, table
from mainspring.cli.session import Access, with_store
from mainspring.ops.schedules.applying import apply, planned
from mainspring.ops.schedules.plan import Action, Planned, planned_view
from mainspring.ops.words import moment
from mainspring.store.ports import Store


@click.command("plan")
@app_argument()
@settings_options
@json_option
def plan_command(access: Access, as_json: bool) -> None:
    """What `apply` would add, change and remove; nothing is written."""
    app = access.load()

    async def look(store: Store) -> list[Planned]:
        return await planned(store, app.clock, app.registry)

    show(with_store(app, look), as_json=as_json)


@click.command("apply")
@app_argument()
@click.option("--prune", is_flag=True, help="Also delete what code declared once and does not any more.")
@settings_options
@json_option
def apply_command(access: Access, prune: bool, as_json: bool) -> None:
    """Write the app's schedules; what somebody edited at run time stays."""
    app = access.load()

    async def carry_out(store: Store) -> list[Planned]:
        return await apply(store, app.clock, app.registry, app.write_schedules, prune=prune)

    found = with_store(app, carry_out)
    show(found, as_json=as_json)
    left = [each.name for each in found if each.action is Action.REMOVE]
    if left and not prune:
        say(f"still on record, and firing: {', '.join(left)}; --prune deletes them")


def show(planned: list[Planned], *, as_json: bool) -> None:
    """A plan, as a table or a document."""
    if as_json:
        document([planned_view(each) for each in planned])
        return
    rows = [(each.action.value, each.name, _changes(each), _fires(each)) for each in planned]
    table(["ACTION", "NAME", "CHANGES", "NEXT"], rows, none="no schedules declared, and none on record")


def _changes(planned: Planned) -> str:
    changes = ", ".join(f"{each.field} {each.was} -> {each.now}" for each in planned.differences)
    if planned.action is Action.KEEP:
        advice = f"`schedules hand-back {planned.name}` lets code have it"
        return printable(f"edited at run time, so it stays ({advice}); code says: {changes}")
    return printable(changes) or "-"


def _fires(planned: Planned) -> str:
    return ", ".join(moment(each) for each in planned.next_fires) or "-"
