"""`why`: the reason for what happened, or did not."""

from __future__ import annotations

from datetime import datetime

import click

from mainspring.admin.why.answer import answer_view
from mainspring.admin.why.asking import Why
from mainspring.cli.options import JOB_ID, moment, store_options
from mainspring.cli.output import document, printable
from mainspring.cli.session import Access


@click.group()
def why() -> None:
    """Explain a slot of a schedule, or the state of a job."""


@why.command("schedule")
@click.argument("name")
@click.option("--at", type=moment, metavar="TIME", help="The slot. Default: the last and the next one.")
@store_options
def why_schedule(name: str, at: datetime | None, access: Access, as_json: bool) -> None:
    """Explain what a schedule did at a moment."""
    if at is not None:
        slot = access.read(lambda store, clock: Why(store, clock).slot(name, at))
        if as_json:
            document({"schedule": name, **answer_view(slot)})
        else:
            click.echo(printable(slot.sentence))
        return
    both = access.read(lambda store, clock: Why(store, clock).schedule(name))
    if as_json:
        document({"schedule": name, "last": answer_view(both.last), "next": answer_view(both.next)})
    else:
        click.echo(f"{printable(both.last.sentence)}\n{printable(both.next.sentence)}")


@why.command("job")
@click.argument("job_id", type=JOB_ID, metavar="ID")
@store_options
def why_job(job_id: int, access: Access, as_json: bool) -> None:
    """Explain what a job waits for, or how it ended."""
    answer = access.read(lambda store, clock: Why(store, clock).job(job_id))
    if as_json:
        document(answer_view(answer))
    else:
        click.echo(printable(answer.sentence))
