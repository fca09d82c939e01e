"""`workflows`: see and steer graphs of jobs."""

from __future__ import annotations

from collections.abc import Sequence

import click

from mainspring.admin.admin import Admin
from mainspring.admin.workflows.queries import ITEMS, PAGE
from mainspring.admin.workflows.views import StepView, WorkflowRow, WorkflowView
from mainspring.cli.jobs import LARGEST_PAGE
from mainspring.cli.options import LARGEST_ID, WORKFLOW_ID, Whole, store_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, table, when
from mainspring.cli.session import Access
from mainspring.cli.step_notes import took
from mainspring.cli.workflow_control import cancel, fork, pause, resume, retry
from mainspring.cli.workflow_graph import graph
from mainspring.cli.workflow_text import show_step, show_workflow, state_in_words
from mainspring.model.workflow import WorkflowState


@click.group()
def workflows() -> None:
    """List, show, draw, cancel, pause, resume, retry and fork workflows."""


for command in (graph, cancel, pause, resume, retry, fork):
    workflows.add_command(command)


@workflows.command("list")
@click.option("--name", type=a_name, help="Only those of this name.")
@click.option("--state", type=click.Choice([each.value for each in WorkflowState]), help="Default: all.")
@click.option("--limit", type=Whole(1, LARGEST_PAGE), default=50, show_default=True)
@click.option("--before", type=Whole(1, LARGEST_ID), metavar="ID", help="Go on below this id.")
@store_options
def list_workflows(
    name: str | None, state: str | None, limit: int, before: int | None, access: Access, as_json: bool
) -> None:
    """Newest first."""
    which = None if state is None else WorkflowState(state)
    found = access.ask(
        lambda admin: admin.workflows.afind(name=name, state=which, before=before, limit=limit)
    )
    if as_json:
        document(found)
        return
    titles = ["ID", "NAME", "VERSION", "STATE", "LEFT", "FAILED", "STARTED AT", "TOOK"]
    table(titles, map(_row, found), none=f"no {state or ''} workflows in {access.where()}".replace("  ", " "))


@workflows.command()
@click.argument("workflow_id", type=WORKFLOW_ID, metavar="ID")
@click.option("--step", metavar="NAME", help="One step: its runs, errors, inputs and output.")
@click.option("--item", type=Whole(0), metavar="N", help="With --step, of a map: one item, from 0.")
@click.option(
    "--first",
    type=Whole(0),
    default=0,
    show_default=True,
    help="With --step: items from this one on.",
)
@click.option(
    "--most",
    type=Whole(1, LARGEST_PAGE),
    help=f"How many items of a map.  [default: {ITEMS}; {PAGE}]",
)
@store_options
def show(
    workflow_id: int,
    step: str | None,
    item: int | None,
    first: int,
    most: int | None,
    access: Access,
    as_json: bool,
) -> None:
    """One workflow: its graph, its timeline, and what was done to it.

    With --step one step of it, or with --item one item of a map.
    """
    if step is None and (item is not None or first):
        raise click.UsageError("--item, --first: expected with --step NAME")

    async def read(admin: Admin) -> WorkflowView | StepView:
        if step is None:
            return await admin.workflows.aget(workflow_id, items=most or ITEMS)
        return await admin.workflows.astep(workflow_id, step, item=item, first=first, most=most or PAGE)

    found = access.ask(read)
    if isinstance(found, StepView):
        if as_json:
            document(found)
        else:
            show_step(found)
    elif as_json:
        document(found)
    else:
        show_workflow(found)


def _row(row: WorkflowRow) -> Sequence[object]:
    ended = None if row.ended_at is None else took(row.ended_at - row.started_at)
    return (
        row.id,
        row.name,
        row.version,
        state_in_words(row),
        row.left,
        row.failed,
        when(row.started_at),
        ended,
    )
