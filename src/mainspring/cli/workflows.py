"""`workflows`: list, show, draw, cancel, pause, resume, retry and fork workflows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click

from mainspring.admin.admin import Admin
from mainspring.admin.order import plain
from mainspring.admin.workflows.graph import GraphView, dot, drawn, mermaid
from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.admin.workflows.queries import ITEMS, PAGE
from mainspring.admin.workflows.views import StepView, WorkflowRow, WorkflowView
from mainspring.cli.audit_log import LARGEST_PAGE
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

ids_argument = click.argument("ids", type=WORKFLOW_ID, metavar="ID...", nargs=-1, required=True)


note_option = click.option("--note", type=one_line, metavar="TEXT", help="The reason, for the audit log.")


States = dict[str, str] | None


@click.group()
def workflows() -> None:
    """List, show and draw workflows; cancel, pause, retry and fork."""


@workflows.command("list")
@click.option("--name", type=a_name, help="Only those of this name.")
@click.option("--state", type=click.Choice([each.value for each in WorkflowState]), help="Default: all.")
@click.option("--limit", type=Whole(1, LARGEST_PAGE), default=50, show_default=True, help="How many to list.")
@click.option(
    "--before",
    type=Whole(1, LARGEST_ID),
    metavar="ID",
    help="Only ids below this one, to read the next page.",
)
@store_options
def list_workflows(
    name: str | None, state: str | None, limit: int, before: int | None, access: Access, as_json: bool
) -> None:
    """List workflows, newest first."""
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
    """Show one workflow: graph, timeline and orders.

    With --step one step of it; with --item one item of a map.
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
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="The output.",
)
@store_options
def graph(which: str, form: str, access: Access, as_json: bool) -> None:
    """Draw the graph of a workflow.

    With an ID it shows the states of the steps. A NAME is looked up in the app that -A names. Without -A, or
    if the app does not declare it, the newest workflow of that name is drawn.
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
@ids_argument
@click.option(
    "--now", is_flag=True, help="Run no further step at all: none that always runs, none that undoes another."
)
@note_option
@author_option
@store_options
def cancel(
    ids: tuple[int, ...], now: bool, note: str | None, author: str, access: Access, as_json: bool
) -> None:
    """End workflows: their open steps are cancelled.

    Steps that always run, and steps that undo others, still run, unless --now is given.
    """
    _give(access, author, ids, lambda order, each: order.acancel(each, now=now, note=note), as_json=as_json)


@workflows.command()
@ids_argument
@note_option
@author_option
@store_options
def pause(ids: tuple[int, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Start no further step of workflows; queued steps run."""
    _give(access, author, ids, lambda order, each: order.apause(each, note=note), as_json=as_json)


@workflows.command()
@ids_argument
@note_option
@author_option
@store_options
def resume(ids: tuple[int, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Continue paused workflows."""
    _give(access, author, ids, lambda order, each: order.aresume(each, note=note), as_json=as_json)


@workflows.command()
@ids_argument
@click.option(
    "--step", "steps", multiple=True, metavar="NAME", help="Only this one; may be given several times."
)
@note_option
@author_option
@store_options
def retry(
    ids: tuple[int, ...], steps: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool
) -> None:
    """Run failed steps again, and the steps after them.

    The results of the steps that succeeded are kept.
    """
    _give(access, author, ids, lambda order, each: order.aretry(each, steps, note=note), as_json=as_json)


@workflows.command()
@click.argument("workflow_id", type=WORKFLOW_ID, metavar="ID")
@click.option("--from", "step", required=True, metavar="STEP", help="The first step that is run again.")
@note_option
@author_option
@store_options
def fork(workflow_id: int, step: str, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Start a new workflow from one step of another.

    It has the results of the steps before that step, and runs the rest again.
    """
    done = access.ask(lambda admin: admin.workflows.afork(workflow_id, step, note=note), by=author)
    if as_json:
        document(plain(done))
    else:
        click.echo(printable(_sentence(done)))
    if done.effect is WorkflowEffect.NONE:
        raise SystemExit(FAILED)


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
    ids: Sequence[int],
    order: Callable[[Workflows, int], Awaitable[WorkflowDone]],
    *,
    as_json: bool,
) -> None:
    """Give an order for each workflow, and say what became of it; exit 1 if one was refused."""
    done = access.each(
        ids,
        lambda admin, workflow_id: order(admin.workflows, workflow_id),
        by=author,
        said=lambda _, each: _sentence(each),
        view=lambda _, each: plain(each),
        as_json=as_json,
    )
    if any(each.effect is WorkflowEffect.NONE and not each.already for each in done):
        raise SystemExit(FAILED)


def _sentence(done: WorkflowDone) -> str:
    return f"workflow {done.workflow_id} ({done.name}) {_said(done)}"


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
