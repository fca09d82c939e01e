"""The `workflows` commands that order something: cancel, pause, resume, retry, fork."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import click

from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.cli.author import author_option, one_line
from mainspring.cli.errors import FAILED
from mainspring.cli.options import WORKFLOW_ID, store_options
from mainspring.cli.output import document, printable
from mainspring.cli.session import Access
from mainspring.model.workflow import WorkflowState

id_argument = click.argument("workflow_id", type=WORKFLOW_ID, metavar="ID")
note_option = click.option("--note", type=one_line, metavar="TEXT", help="Why, for the record.")


@click.command()
@id_argument
@click.option("--now", is_flag=True, help="Run nothing more: not even what runs always or undoes a step.")
@note_option
@author_option
@store_options
def cancel(workflow_id: int, now: bool, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """End a workflow: its steps are taken away, and what is to run always or to undo them still runs."""
    _order(access, author, lambda order: order.acancel(workflow_id, now=now, note=note), as_json=as_json)


@click.command()
@id_argument
@note_option
@author_option
@store_options
def pause(workflow_id: int, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Release no further step of a workflow; what is in the queue runs."""
    _order(access, author, lambda order: order.apause(workflow_id, note=note), as_json=as_json)


@click.command()
@id_argument
@note_option
@author_option
@store_options
def resume(workflow_id: int, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Go on with a workflow that is paused."""
    _order(access, author, lambda order: order.aresume(workflow_id, note=note), as_json=as_json)


@click.command()
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
    _order(access, author, lambda order: order.aretry(workflow_id, steps, note=note), as_json=as_json)


@click.command()
@id_argument
@click.option("--from", "step", required=True, metavar="STEP", help="The first step that is run again.")
@note_option
@author_option
@store_options
def fork(workflow_id: int, step: str, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Start a new workflow that has the results of the steps before one, and runs the rest again."""
    _order(access, author, lambda order: order.afork(workflow_id, step, note=note), as_json=as_json)


def _order(
    access: Access,
    author: str,
    order: Callable[[Workflows], Awaitable[WorkflowDone]],
    *,
    as_json: bool,
) -> None:
    """Give it, and say what became of it; exit 1 if it was refused."""
    done = access.ask(lambda admin: order(admin.workflows), by=author)
    if as_json:
        document(done)
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
