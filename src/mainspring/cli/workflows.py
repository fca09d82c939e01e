"""`workflows`: list, show, draw, cancel, pause, resume, retry and fork workflows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click

from mainspring.admin.admin import Admin
from mainspring.admin.order import plain
from mainspring.admin.workflows.diagram import dot, mermaid
from mainspring.admin.workflows.graph import GraphView, drawn
from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.admin.workflows.queries import ITEMS, PAGE
from mainspring.admin.workflows.views import StepView, WorkflowRow, WorkflowView
from mainspring.cli.acts import LARGEST_PAGE
from mainspring.cli.errors import FAILED
from mainspring.cli.options import LARGEST_ID, WORKFLOW_ID, Whole, author_option, one_line, store_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, printable, table, when
from mainspring.cli.session import Access
from mainspring.cli.workflow_text import show_graph, show_step, show_workflow, state_in_words, took
from mainspring.errors import NotFound
from mainspring.model.workflow import Definition, WorkflowState
from mainspring.tasks.registry import Registry
from mainspring.tasks.workflow_task import PREFIX, WorkflowTask

id_argument = click.argument("workflow_id", type=WORKFLOW_ID, metavar="ID")


note_option = click.option("--note", type=one_line, metavar="TEXT", help="Why, for the record.")


States = dict[str, str] | None


@click.group()
def workflows() -> None:
    """List, show, draw, cancel, pause, resume, retry and fork workflows."""


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


@workflows.command()
@click.argument("which", metavar="ID|NAME")
@click.option(
    "--format", "form", type=click.Choice(["text", "mermaid", "dot"]), default="text", show_default=True
)
@store_options
def graph(which: str, form: str, access: Access, as_json: bool) -> None:
    """The graph of a workflow: of one by its id, with its states, or as it is declared.

    A NAME is looked up in the app that is named with -A; without one, or where the app does not declare
    it, the newest workflow of that name tells.
    """
    registry = access.registry()
    declared = None if registry is None or which.isdigit() else declared_graph(registry, which)
    definition, states = (
        (declared, None)
        if declared is not None
        else access.ask(lambda admin: _stored(admin.workflows, which))
    )
    tell(definition, states, form, as_json=as_json)


@workflows.command()
@id_argument
@click.option("--now", is_flag=True, help="Run nothing more: not even what runs always or undoes a step.")
@note_option
@author_option
@store_options
def cancel(workflow_id: int, now: bool, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """End a workflow: its steps are taken away, and what is to run always or to undo them still runs."""
    _give(access, author, lambda order: order.acancel(workflow_id, now=now, note=note), as_json=as_json)


@workflows.command()
@id_argument
@note_option
@author_option
@store_options
def pause(workflow_id: int, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Release no further step of a workflow; what is in the queue runs."""
    _give(access, author, lambda order: order.apause(workflow_id, note=note), as_json=as_json)


@workflows.command()
@id_argument
@note_option
@author_option
@store_options
def resume(workflow_id: int, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Go on with a workflow that is paused."""
    _give(access, author, lambda order: order.aresume(workflow_id, note=note), as_json=as_json)


@workflows.command()
@id_argument
@click.option(
    "--step", "steps", multiple=True, metavar="NAME", help="Only this one; may be given several times."
)
@note_option
@author_option
@store_options
def retry(
    workflow_id: int, steps: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool
) -> None:
    """Run failed steps of a workflow again, and what came after them; what succeeded is kept."""
    _give(access, author, lambda order: order.aretry(workflow_id, steps, note=note), as_json=as_json)


@workflows.command()
@id_argument
@click.option("--from", "step", required=True, metavar="STEP", help="The first step that is run again.")
@note_option
@author_option
@store_options
def fork(workflow_id: int, step: str, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Start a new workflow that has the results of the steps before one, and runs the rest again."""
    _give(access, author, lambda order: order.afork(workflow_id, step, note=note), as_json=as_json)


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


def _give(
    access: Access,
    author: str,
    order: Callable[[Workflows], Awaitable[WorkflowDone]],
    *,
    as_json: bool,
) -> None:
    """Give it, and say what became of it; exit 1 if it was refused."""
    done = access.ask(lambda admin: order(admin.workflows), by=author)
    if as_json:
        document(plain(done))
    else:
        click.echo(printable(f"workflow {done.workflow_id} ({done.name}) {_said(done)}"))
    if done.effect is WorkflowEffect.NONE and not done.already:
        raise SystemExit(FAILED)


def _said(done: WorkflowDone) -> str:
    running = done.state is WorkflowState.RUNNING
    match done.effect:
        case WorkflowEffect.NONE:
            return f"{done.why}; nothing was done"
        case WorkflowEffect.CANCELLED:
            return (
                "is being cancelled: what runs always or undoes steps is still to run"
                if running
                else "cancelled"
            )
        case WorkflowEffect.RETRIED:
            return f"retried: {', '.join(done.steps)}"
        case WorkflowEffect.FORKED:
            return f"forked: the new one is workflow {done.new_id}"
        case _:
            return done.effect


def tell(definition: Definition, states: States, form: str, *, as_json: bool) -> None:
    """Write a graph; with states, those of the steps as they stand."""
    nodes = drawn(definition)
    if as_json:
        document(GraphView.of(definition, states))
    elif form == "mermaid":
        click.echo(mermaid(nodes, states))
    elif form == "dot":
        click.echo(dot(definition.name, nodes, states))
    else:
        show_graph(definition.name, nodes, states)


def declared_graph(registry: Registry, name: str) -> Definition | None:
    """What an app declares under this name: its task knows the graph."""
    task = registry.tasks.get(f"{PREFIX}{name}")
    return task.definition if isinstance(task, WorkflowTask) else None


async def _stored(workflows: Workflows, which: str) -> tuple[Definition, States]:
    if which.isascii() and which.isdigit() and int(which) <= LARGEST_ID:
        view = await workflows.aget(int(which), items=0)
        definition = await workflows.adefinition(int(which))
        return definition, {each.name: each.state for each in view.nodes}
    found = await workflows.anewest(which)
    if found is None:
        raise NotFound("workflow", which)
    return found, None
