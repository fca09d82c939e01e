"""`queues` and `limits`: what waits where, and what is in its way."""

from __future__ import annotations

from datetime import timedelta

import click

from mainspring.admin.queues import gate_in_words, gate_view, queue_view
from mainspring.cli.author import author_option, one_line
from mainspring.cli.options import Whole, length, store_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, printable, say, table, when
from mainspring.cli.session import Access


@click.group()
def queues() -> None:
    """See what waits in each queue; pause, resume and drain them."""


@queues.command("list")
@store_options
def list_queues(access: Access, as_json: bool) -> None:
    """By name."""
    found = access.ask(lambda admin: admin.queues.aall())
    if as_json:
        document([queue_view(each) for each in found])
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
@click.argument("name")
@click.option("--note", type=one_line, metavar="TEXT", help="Why, for those who find it paused.")
@author_option
@store_options
def pause(name: str, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Claim nothing more from a queue; what runs goes on."""
    done = access.ask(lambda admin: admin.queues.apause(name, note=note), by=author)
    _tell(name, "paused" if done else "is paused already", done, as_json=as_json)


@queues.command()
@click.argument("name")
@author_option
@store_options
def resume(name: str, author: str, access: Access, as_json: bool) -> None:
    """Claim from a queue again."""
    done = access.ask(lambda admin: admin.queues.aresume(name), by=author)
    _tell(name, "resumed" if done else "is not paused", done, as_json=as_json)


@queues.command()
@click.argument("name")
@click.option("--note", type=one_line, metavar="TEXT", help="Why, for those who find it paused.")
@click.option("--within", type=length, default="10m", show_default=True, help="How long to wait.")
@author_option
@store_options
def drain(name: str, note: str | None, within: timedelta, author: str, access: Access, as_json: bool) -> None:
    """Pause a queue and wait until nothing of it runs; exit 1 if something still does."""

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
    """See the limits jobs wait for, and who holds their places."""


@limits.command("list")
@click.option("--name", type=a_name, help="Only this limit.")
@click.option("--key", help="Only this key of it.")
@click.option("--limit", type=Whole(1, 10_000), default=100, show_default=True)
@store_options
def list_limits(name: str | None, key: str | None, limit: int, access: Access, as_json: bool) -> None:
    """By name and key."""
    found = access.ask(lambda admin: admin.limits.afind(name=name, key=key, limit=limit))
    if as_json:
        document([gate_view(each) for each in found])
        return
    rows = [
        (
            each.gate.name,
            each.gate.key or None,
            gate_in_words(each.gate),
            each.used,
            each.waiting,
            ", ".join(map(str, each.holders)) or None,
        )
        for each in found
    ]
    table(
        ["LIMIT", "KEY", "ALLOWS", "USED", "WAITING", "HOLDERS"], rows, none=f"no limits in {access.where()}"
    )


def _tell(name: str, said: str, done: bool, *, as_json: bool) -> None:
    if as_json:
        document({"name": name, "changed": done})
    else:
        click.echo(printable(f"queue {name} {said}") + ("" if done else "; nothing was done"))
