"""Which dead letters: the options that `dead list`, `groups`, `replay` and `purge` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import click

from mainspring.admin.views import iso
from mainspring.cli.options import JOB_ID, LARGEST_ID, Whole, moment
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.run import Reason

_WHICH = "which ones? Give their ids (7 9), or --all, or a filter such as --task NAME; not two of these."


def dead_filter(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given `which`, a DeadFilter, with its default limit."""

    @click.option("--task", metavar="NAME", help="Of this task.")
    @click.option("--queue", metavar="NAME", help="Of this queue.")
    @click.option(
        "--error", metavar="TYPE", help="Whose last error is of this type, with or without its module."
    )
    @click.option("--message", "text", metavar="TEXT", help="Whose last error's message holds this.")
    @click.option("--reason", type=click.Choice([each.value for each in Reason]), help="Why it died.")
    @click.option(
        "--died-after", "died_from", type=moment, metavar="ISO", help="Died at this moment or later."
    )
    @click.option("--died-before", type=moment, metavar="ISO", help="Died before this moment.")
    @click.option("--before", type=Whole(1, LARGEST_ID), metavar="ID", help="Go on below this id.")
    @wraps(command)
    def filtered(*args: object, **options: object) -> None:
        names = ("task", "queue", "error", "text", "reason", "died_from", "died_before", "before")
        given = {name: options.pop(name) for name in names}
        command(*args, which=DeadFilter(**given), **options)  # type: ignore[arg-type]

    return filtered


def selection(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given `which`: ids, or a filter that names at least something."""

    @click.argument("ids", nargs=-1, type=JOB_ID, metavar="[ID]...")
    @click.option("--all", "everything", is_flag=True, help="All of them.")
    @dead_filter
    @wraps(command)
    def selected(
        *args: object, ids: tuple[int, ...], everything: bool, which: DeadFilter, **options: object
    ) -> None:
        # --before alone is where to go on, not which ones.
        filtered = which != DeadFilter(before=which.before)
        if [bool(ids), everything, filtered].count(True) != 1 or (ids and which.before is not None):
            raise click.UsageError(_WHICH)
        command(*args, which=ids or which, **options)

    return selected


def words(which: DeadFilter) -> str:
    """The filter as it would be typed, for those who go on later."""
    given = {
        "--task": which.task,
        "--queue": which.queue,
        "--error": which.error,
        "--message": which.text,
        "--reason": which.reason,
        "--died-after": iso(which.died_from),
        "--died-before": iso(which.died_before),
    }
    said = " ".join(f"{option} {_quoted(value)}" for option, value in given.items() if value is not None)
    return said or "--all"


def _quoted(value: str) -> str:
    from shlex import quote  # for the rare command that is cut short

    return quote(value)
