"""`events`: send events that jobs wait for."""

from __future__ import annotations

import click

from mainspring.admin.events import SentView
from mainspring.cli.options import JOB_ID, author_option, store_options
from mainspring.cli.output import document, printable
from mainspring.cli.session import Access
from mainspring.tasks.payload import read_json


@click.group()
def events() -> None:
    """Send events that jobs wait for."""


@events.command()
@click.argument("name")
@click.argument("payload", metavar="[JSON]", required=False)
@click.option("--job", "job_id", type=JOB_ID, metavar="ID", help="For this job alone.")
@author_option
@store_options
def send(
    name: str, payload: str | None, job_id: int | None, author: str, access: Access, as_json: bool
) -> None:
    """Send an event to one job, or to all jobs.

    An event for all reaches every job that waits for it now or later. Only the first event of a name counts.
    """
    said = None if payload is None else read_json(payload, "JSON")
    sent = access.ask(lambda admin: admin.events.asend(name, said, job_id=job_id), by=author)
    if as_json:
        document(SentView.of(sent))
        return
    whose = "all jobs" if job_id is None else f"job {job_id}"
    done = "sent" if sent.first else "had been sent before; nothing was done"
    click.echo(printable(f"event {name} for {whose} {done}"))
