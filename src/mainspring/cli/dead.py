"""`dead`: the jobs that failed for the last time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import click

from mainspring.cli.jobs import LARGEST_PAGE, report, show_job
from mainspring.cli.options import JOB_ID, LARGEST_ID, store_options
from mainspring.cli.output import document, say, table, when
from mainspring.cli.session import Access
from mainspring.model.history import DeadFilter, DeadJob
from mainspring.ops.commands import Commands
from mainspring.ops.queries import Queries
from mainspring.ops.views import dead_view

_WHICH = "which ones? Give their ids (7 9), or --all, or --task NAME, --queue NAME or both; not two of these."


@click.group()
def dead() -> None:
    """Inspect, replay and purge dead letters."""


@dead.command("list")
@click.option("--task")
@click.option("--queue")
@click.option("--limit", type=click.IntRange(1, LARGEST_PAGE), default=50, show_default=True)
@click.option("--before", type=click.IntRange(1, LARGEST_ID), metavar="ID", help="Go on below this id.")
@store_options
def list_dead(
    task: str | None,
    queue: str | None,
    limit: int,
    before: int | None,
    access: Access,
    as_json: bool,
) -> None:
    """Newest first."""
    which = DeadFilter(task=task, queue=queue, before=before, limit=limit)
    found = access.ask(lambda store, clock: Queries(store, clock).dead(which))
    if as_json:
        document([dead_view(each) for each in found])
    else:
        titles = ["ID", "TASK", "QUEUE", "DIED AT", "REASON", "LAST ERROR"]
        table(titles, map(_row, found), none=f"no dead letters in {access.where()}")


@dead.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@store_options
def show(job_id: int, access: Access, as_json: bool) -> None:
    """One dead letter, with every error it reported."""
    view = dead_view(access.ask(lambda store, clock: Queries(store, clock).dead_letter(job_id)))
    if as_json:
        document(view)
    else:
        show_job(view)


def selection(command: Callable[..., None]) -> Callable[..., None]:
    """Which dead letters: ids, or all of some kind."""
    command = click.option("--queue", help="All of this queue.")(command)
    command = click.option("--task", help="All of this task.")(command)
    command = click.option("--all", "everything", is_flag=True, help="All of them.")(command)
    return click.argument("ids", nargs=-1, type=JOB_ID, metavar="[ID]...")(command)


@dead.command()
@selection
@store_options
@click.pass_context
def replay(
    ctx: click.Context,
    ids: tuple[int, ...],
    everything: bool,
    task: str | None,
    queue: str | None,
    access: Access,
    as_json: bool,
) -> None:
    """Put dead jobs back into their queues, with all attempts restored."""
    which = _which(ids, everything, task, queue)
    done = access.ask(lambda store, clock: Commands(store, clock).replay(which))
    code = report(done, as_json=as_json)
    say(f"{sum(each.effect == 'replayed' for each in done)} replayed")
    ctx.exit(code)


@dead.command()
@selection
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@store_options
def purge(
    ids: tuple[int, ...],
    everything: bool,
    task: str | None,
    queue: str | None,
    yes: bool,
    access: Access,
    as_json: bool,
) -> None:
    """Delete dead letters for good."""
    which = _which(ids, everything, task, queue)
    if not yes and not _agreed():
        say("nothing was deleted")
        return
    count = access.ask(lambda store, clock: Commands(store, clock).purge(which))
    if as_json:
        document({"purged": count})
    else:
        click.echo(f"{count} purged")


def _which(
    ids: tuple[int, ...], everything: bool, task: str | None, queue: str | None
) -> tuple[int, ...] | DeadFilter:
    kinds = [bool(ids), everything, task is not None or queue is not None]
    if sum(kinds) != 1:
        raise click.UsageError(_WHICH)
    return ids or DeadFilter(task=task, queue=queue)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("--yes: expected, for there is nobody to ask and deleting cannot be undone")
    return click.confirm("Delete these dead letters for good?", err=True)


def _row(letter: DeadJob) -> Sequence[object]:
    last = letter.errors[-1] if letter.errors else None
    error = None if last is None else f"{last.type}: {last.message}"
    return letter.id, letter.task, letter.queue, when(letter.died_at), letter.reason, error
