"""`dead`: the jobs that are not tried again."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
import msgspec

from mainspring.admin.views import DeadView
from mainspring.cli.author import author_option
from mainspring.cli.dead_edit import edit
from mainspring.cli.dead_filter import dead_filter, selection
from mainspring.cli.dead_replay import replay
from mainspring.cli.jobs import LARGEST_PAGE, show_job
from mainspring.cli.options import JOB_ID, Whole, store_options
from mainspring.cli.output import document, say, table, when
from mainspring.cli.session import Access
from mainspring.model.history import DeadFilter, DeadGroup, DeadJob

limit_option = click.option("--limit", type=Whole(1, LARGEST_PAGE), default=50, show_default=True)


@click.group()
def dead() -> None:
    """Inspect, edit, replay and purge dead letters."""


dead.add_command(edit)
dead.add_command(replay)


@dead.command("list")
@dead_filter
@limit_option
@store_options
def list_dead(which: DeadFilter, limit: int, access: Access, as_json: bool) -> None:
    """Newest first."""
    page = msgspec.structs.replace(which, limit=limit)
    found = access.ask(lambda admin: admin.dead_letters.afind(page))
    if as_json:
        document([DeadView.of_letter(each) for each in found])
    else:
        titles = ["ID", "TASK", "QUEUE", "DIED AT", "REASON", "LAST ERROR"]
        table(titles, map(_row, found), none=f"no dead letters in {access.where()}")


@dead.command()
@dead_filter
@limit_option
@store_options
def groups(which: DeadFilter, limit: int, access: Access, as_json: bool) -> None:
    """By task and last error, the most frequent first."""
    page = msgspec.structs.replace(which, limit=limit)
    found = access.ask(lambda admin: admin.dead_letters.agroups(page))
    if as_json:
        document(found)
    else:
        titles = ["COUNT", "TASK", "NEWEST", "NEWEST ID", "ERROR"]
        table(titles, map(_group_row, found), none=f"no dead letters in {access.where()}")


@dead.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@store_options
def show(job_id: int, access: Access, as_json: bool) -> None:
    """One dead letter, with every error it reported."""
    letter = DeadView.of_letter(access.ask(lambda admin: admin.dead_letters.aget(job_id)))
    if as_json:
        document(letter)
    else:
        show_job(letter)


@dead.command()
@selection
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@author_option
@store_options
def purge(which: tuple[int, ...] | DeadFilter, yes: bool, author: str, access: Access, as_json: bool) -> None:
    """Delete dead letters for good."""
    if not yes and not _agreed():
        say("nothing was deleted")
        return
    count = access.ask(lambda admin: admin.dead_letters.apurge(which), by=author)
    if as_json:
        document({"purged": count})
    else:
        click.echo(f"{count} purged")


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("--yes: expected, for there is nobody to ask and deleting cannot be undone")
    return click.confirm("Delete these dead letters for good?", err=True)


def _row(letter: DeadJob) -> Sequence[object]:
    last = letter.errors[-1] if letter.errors else None
    error = None if last is None else f"{last.type}: {last.message}"
    return letter.id, letter.task, letter.queue, when(letter.died_at), letter.reason, error


def _group_row(group: DeadGroup) -> Sequence[object]:
    error = f"{group.error}: {group.line}" if group.error else None
    return group.count, group.task, when(group.newest_at), group.newest_id, error
