"""The `schedules` commands that order something: pause, resume, trigger, skip, hand-back, delete."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from mainspring.admin.schedules.orders import ScheduleDone, ScheduleDoneView, ScheduleEffect
from mainspring.cli.author import author_option, one_line
from mainspring.cli.options import Whole, store_options
from mainspring.cli.output import document, printable, say
from mainspring.cli.session import Access

MOST_SKIPS = 1000
names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...")


@click.command()
@names_argument
@click.option("--note", type=one_line, metavar="TEXT", help="Why, for those who find it paused.")
@author_option
@store_options
def pause(names: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Skip the slots of schedules from now on, until they are resumed."""
    report(
        access.ask(lambda admin: admin.schedules.apause(names, note=note), by=author),
        as_json=as_json,
    )


@click.command()
@names_argument
@author_option
@store_options
def resume(names: tuple[str, ...], author: str, access: Access, as_json: bool) -> None:
    """End the pause of schedules; the slots of the pause are not caught up."""
    report(
        access.ask(lambda admin: admin.schedules.aresume(names), by=author),
        as_json=as_json,
    )


@click.command()
@click.argument("name")
@author_option
@store_options
def trigger(name: str, author: str, access: Access, as_json: bool) -> None:
    """Make a job of a schedule now, besides its slots, even if it is paused."""
    done = access.ask(lambda admin: admin.schedules.atrigger(name), by=author)
    if as_json:
        document(done)
    else:
        click.echo(printable(f"job {done.job_id} ({done.task} in {done.queue})"))


@click.command()
@click.argument("name")
@click.option("--count", type=Whole(1, MOST_SKIPS), default=1, show_default=True)
@author_option
@store_options
def skip(name: str, count: int, author: str, access: Access, as_json: bool) -> None:
    """Skip the next slots of a schedule, on top of those that are to be skipped already."""
    done = access.ask(lambda admin: admin.schedules.askip(name, count), by=author)
    if as_json:
        document(done)
    else:
        slots = "slot" if done.skips == 1 else f"{done.skips} slots"
        click.echo(printable(f"schedule {done.name}: its next {slots} will be skipped"))


@click.command("hand-back")
@names_argument
@click.option("--note", type=one_line, metavar="TEXT", help="Why, for the record.")
@author_option
@store_options
def hand_back(names: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Let code have schedules that somebody edited: what an app declares counts again.

    Nothing changes before an app says so. One that no app declares is for `apply --prune` to delete.
    """
    report(
        access.ask(lambda admin: admin.schedules.arevert(names, note=note), by=author),
        as_json=as_json,
    )


@click.command()
@names_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@author_option
@store_options
def delete(names: tuple[str, ...], yes: bool, author: str, access: Access, as_json: bool) -> None:
    """Take schedules away; their ledger, their history and the jobs they made stay."""
    if not yes and not _agreed():
        say("nothing was deleted")
        return
    report(
        access.ask(lambda admin: admin.schedules.adelete(names), by=author),
        as_json=as_json,
    )


def report(done: Sequence[ScheduleDone], *, as_json: bool) -> None:
    """Say what became of each; what was so already is no failure."""
    if as_json:
        document([ScheduleDoneView.of(each) for each in done])
        return
    for each in done:
        said = (
            f"{each.why}; nothing was done"
            if each.effect is ScheduleEffect.NONE
            else each.effect.replace("_", " ")
        )
        click.echo(printable(f"schedule {each.name} {said}"))


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("--yes: expected, for there is nobody to ask and deleting cannot be undone")
    return click.confirm("Delete these schedules?", err=True)
