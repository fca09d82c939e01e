"""`queues` and `limits`: what waits where, and what is in its way."""

from __future__ import annotations

from datetime import timedelta

import click

from mainspring.admin.queues import LimitView, QueueView, limit_key_in_words
from mainspring.cli.options import Whole, author_option, length, one_line, store_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, printable, say, table, when
from mainspring.cli.session import Access


@click.group()
def queues() -> None:
    """List, pause, resume and drain queues."""


@queues.command("list")
@store_options
def list_queues(access: Access, as_json: bool) -> None:
    """List queues by name."""
    found = access.ask(lambda admin: admin.queues.aall())
    if as_json:
        document([QueueView.of(each) for each in found])
        return
    titles = ["QUEUE", "READY", "DELAYED", "RUNNING", "OLDEST", "WORKERS", "PAUSED"]
    rows = [
        (
            each.name,
            each.ready,
            each.delayed,
            each.running,
            when(each.oldest_ready_at),
            each.workers,
            None if each.pause is None else f"by {each.pause.paused_by} at {when(each.pause.paused_at)}",
        )
        for each in found
    ]
    table(titles, rows, none=f"no queues in {access.where()}")


@queues.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option("--note", type=one_line, metavar="TEXT", help="The reason, shown while it is paused.")
@author_option
@store_options
def pause(names: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Claim no more jobs from queues; running jobs go on."""
    access.each(
        names,
        lambda admin, name: admin.queues.apause(name, note=note),
        by=author,
        said=lambda name, done: f"queue {name} {'paused' if done else 'is paused already; nothing was done'}",
        view=_changed,
        as_json=as_json,
    )


@queues.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@author_option
@store_options
def resume(names: tuple[str, ...], author: str, access: Access, as_json: bool) -> None:
    """Claim jobs from paused queues again."""
    access.each(
        names,
        lambda admin, name: admin.queues.aresume(name),
        by=author,
        said=lambda name, done: f"queue {name} {'resumed' if done else 'is not paused; nothing was done'}",
        view=_changed,
        as_json=as_json,
    )


@queues.command()
@click.argument("name")
@click.option("--note", type=one_line, metavar="TEXT", help="The reason, shown while it is paused.")
@click.option("--within", type=length, default="10m", show_default=True, help="How long to wait.")
@author_option
@store_options
def drain(name: str, note: str | None, within: timedelta, author: str, access: Access, as_json: bool) -> None:
    """Pause a queue and wait until no job of it runs.

    Exit 1 if a job still runs after --within.
    """

    left = access.ask(lambda admin: admin.queues.adrain(name, within=within, note=note), by=author)
    if as_json:
        document({"name": name, "running": left})
    elif not left:
        click.echo(printable(f"queue {name} drained: nothing of it runs, and nothing is claimed"))
    if left:
        say(f"queue {printable(name)}: paused, and {left} of its jobs still run")
        raise SystemExit(1)


@click.group()
def limits() -> None:
    """Show limits that jobs wait for, and who holds them."""


@limits.command("list")
@click.option("--name", type=a_name, help="Only this limit.")
@click.option("--key", help="Only this key of it.")
@click.option("--limit", type=Whole(1, 10_000), default=100, show_default=True, help="How many to list.")
@store_options
def list_limits(name: str | None, key: str | None, limit: int, access: Access, as_json: bool) -> None:
    """List limits by name and key."""
    found = access.ask(lambda admin: admin.limits.afind(name=name, key=key, limit=limit))
    if as_json:
        document([LimitView.of(each) for each in found])
        return
    rows = [
        (
            each.limit_key.name,
            each.limit_key.key or None,
            limit_key_in_words(each.limit_key),
            each.used,
            each.waiting,
            ", ".join(map(str, each.holders)) or None,
        )
        for each in found
    ]
    table(
        ["LIMIT", "KEY", "ALLOWS", "USED", "WAITING", "HOLDERS"], rows, none=f"no limits in {access.where()}"
    )


def _changed(name: str, changed: bool) -> dict[str, object]:
    return {"name": name, "changed": changed}
