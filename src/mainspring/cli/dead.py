"""`dead`: list, edit, replay and purge the jobs that are not retried any more."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps

import click
import msgspec

from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import Arguments, Replayed, ReplayedPage
from mainspring.admin.views import DeadView, iso
from mainspring.admin.why.job import retry_words
from mainspring.cli.audit_log import LARGEST_PAGE
from mainspring.cli.jobs import report, show_job
from mainspring.cli.options import (
    JOB_ID,
    LARGEST_ID,
    Whole,
    author_option,
    keywords,
    moment,
    pairs,
    positional,
    store_options,
    value,
)
from mainspring.cli.output import document, say, table, when
from mainspring.cli.session import Access
from mainspring.errors import shown
from mainspring.model.dead_letter import DeadFilter, DeadGroup, DeadJob
from mainspring.model.run import Reason
from mainspring.tasks.signature import TextKind

limit_option = click.option(
    "--limit", type=Whole(1, LARGEST_PAGE), default=50, show_default=True, help="How many to list."
)


_WHICH = "expected ids such as 7 9, or --all, or a filter such as --task NAME, and only one of these"


_SECONDS = {"s": 1, "m": 60, "h": 3600}


_RATE = re.compile(r"([0-9]{1,6})(?:/([smh]))?", re.ASCII)


_NAMED = 10


def dead_filter(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given `which`, a DeadFilter, with its default limit."""

    @click.option("--task", metavar="NAME", help="Of this task.")
    @click.option("--queue", metavar="NAME", help="Of this queue.")
    @click.option(
        "--error", metavar="TYPE", help="With a last error of this type, with or without its module."
    )
    @click.option(
        "--message", "text", metavar="TEXT", help="With this text in the message of the last error."
    )
    @click.option("--reason", type=click.Choice([each.value for each in Reason]), help="Why it died.")
    @click.option(
        "--died-after", "died_from", type=moment, metavar="ISO", help="Died at this moment or later."
    )
    @click.option("--died-before", type=moment, metavar="ISO", help="Died before this moment.")
    @click.option(
        "--before",
        type=Whole(1, LARGEST_ID),
        metavar="ID",
        help="Only ids below this one, to read the next page.",
    )
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


def _rate(text: str) -> float:
    """So many a second, minute or hour."""
    found = _RATE.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise click.BadParameter(f"expected a _rate such as 50/s, 100/m or 10/h, got {shown(text)}")
    return int(found[1]) / _SECONDS[found[2] or "s"]


@click.group()
def dead() -> None:
    """Inspect, edit, replay and purge dead letters."""


@dead.command("list")
@dead_filter
@limit_option
@store_options
def list_dead(which: DeadFilter, limit: int, access: Access, as_json: bool) -> None:
    """List dead letters, newest first."""
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
    """Count dead letters by task and last error."""
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
    """Show one dead letter and all its errors."""
    letter = DeadView.of_letter(access.ask(lambda admin: admin.dead_letters.aget(job_id)))
    if as_json:
        document(letter)
    else:
        show_job(letter)


@dead.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--args", "listed", metavar="JSON", help="Other positional arguments, as a JSON array.")
@click.option("--kwargs", "named", metavar="JSON", help="Other keyword arguments, as a JSON object.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="One keyword argument; may be repeated."
)
@author_option
@store_options
def edit(
    job_id: int,
    listed: str | None,
    named: str | None,
    sets: tuple[str, ...],
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Change the arguments of a dead letter.

    `jobs show` shows the old arguments. With -A the arguments are checked against the task's parameters,
    and a VALUE is read as their types say. Without -A, a VALUE is JSON if it can be read as JSON, else text.
    Arguments that are not named stay as they are.
    """
    if listed is None and named is None and not sets:
        raise click.UsageError("nothing to change: expected --args, --kwargs or --set")
    args, kwargs, texts = positional(listed), keywords(named), pairs(sets)
    registry = None if access.app is None else access.load()._registry

    def change(letter: DeadJob, had: Arguments) -> Arguments:
        task = None if registry is None else registry.get(letter.task)
        kind = (lambda _: TextKind.OTHER) if task is None else task.signature.text_kind
        now = had[0] if listed is None else args
        by_name = {
            **(had[1] if named is None else kwargs),
            **{k: value(k, t, kind(k)) for k, t in texts.items()},
        }
        if task is not None:
            task.check(now, by_name)
        return now, by_name

    letter, changed = access.ask(lambda admin: admin.dead_letters.aedit(job_id, change), by=author)
    if as_json:
        document(DeadView.of_letter(letter))
        return
    show_job(DeadView.of_letter(letter))
    say("edited" if changed else "it has these arguments already; nothing was changed")


@dead.command()
@selection
@click.option(
    "--rate", "per_second", type=_rate, metavar="N/s", help="No faster than this: 50/s, 100/m, 10/h."
)
@author_option
@store_options
@click.pass_context
def replay(
    ctx: click.Context,
    which: tuple[int, ...] | DeadFilter,
    per_second: float | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Put dead jobs back into their queues.

    They get all their attempts again, and no deadline. Many jobs are put back from the newest id down. If
    the command is interrupted, it prints the command that continues.
    """
    if isinstance(which, DeadFilter) or per_second is not None:
        chosen = which if isinstance(which, DeadFilter) else DeadFilter(ids=which)
        bulk = Bulk(chosen, per_second)
        try:
            access.ask(bulk.run, by=author)
        finally:
            bulk.tell(as_json=as_json)
        return
    done = access.ask(lambda admin: admin.dead_letters.areplay(which), by=author)
    code = report(done, as_json=as_json)
    say(f"{sum(each.effect == 'replayed' for each in done)} replayed")
    ctx.exit(code)


@dead.command()
@selection
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
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


class Bulk:
    """A replay of many letters, and how far it is."""

    def __init__(self, which: DeadFilter, per_second: float | None) -> None:
        self._which = which
        self._per_second = per_second
        self._done = Replayed()
        self._whole = False

    async def run(self, admin: Admin) -> None:
        """Put them back, with a bar for a terminal."""
        total = await admin.dead_letters.acount(self._which)
        with click.progressbar(length=total, label="replaying", file=sys.stderr, show_pos=True) as bar:

            def on_page(page: ReplayedPage) -> None:
                self._done = self._done.with_page(page)
                bar.update(page.looked_at)

            try:
                await admin.dead_letters.areplay_all(
                    self._which, per_second=self._per_second, on_page=on_page
                )
                self._whole = True
            except asyncio.CancelledError:
                bar.finish()
                raise

    def tell(self, *, as_json: bool) -> None:
        """What was done, also when it was cut short: those are in their queues."""
        done = self._done
        if done.last_id is None and not self._whole:
            return  # nothing began: the error says all there is to say
        if as_json:
            replayed = {"replayed": len(done.job_ids), "ids": done.job_ids, "complete": self._whole}
            left = {"left": done.left, "workflows": done.workflows} if done.left else {}
            document({**replayed, **left})
        else:
            click.echo(f"{len(done.job_ids)} replayed")
        if done.left:
            say(_left(done.left, done.workflows))
        if done.last_id is not None and not self._whole:
            say(f"cut short; go on with: mainspring dead replay {_rest(self._which, done.last_id)}")


def _left(count: int, workflows: Sequence[int]) -> str:
    named = ", ".join(map(str, workflows[:_NAMED]))
    more = f" and {len(workflows) - _NAMED} more" if len(workflows) > _NAMED else ""
    whose = f"workflow {named}" if len(workflows) == 1 else f"workflows {named}{more}"
    one = workflows[0] if len(workflows) == 1 else "ID"
    return f"{count} left, for they belong to {whose}: run them again with `{retry_words(one)}`"


def _rest(which: DeadFilter, last_id: int) -> str:
    if which.ids is not None:
        return " ".join(str(each) for each in which.ids if each < last_id)
    return f"{_words(which)} --before {last_id}"


def _words(which: DeadFilter) -> str:
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


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError(
            "--yes: expected, because there is no terminal to ask and deleting cannot be undone"
        )
    return click.confirm("Delete these dead letters for good?", err=True)


def _row(letter: DeadJob) -> Sequence[object]:
    last = letter.errors[-1] if letter.errors else None
    error = None if last is None else f"{last.type}: {last.message}"
    return letter.id, letter.task, letter.queue, when(letter.died_at), letter.reason, error


def _group_row(group: DeadGroup) -> Sequence[object]:
    error = f"{group.error}: {group.line}" if group.error else None
    return group.count, group.task, when(group.newest_at), group.newest_id, error


dead.add_command(edit)


dead.add_command(replay)
