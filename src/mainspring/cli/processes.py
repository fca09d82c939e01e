"""`processes`: the processes of the fleet."""

from __future__ import annotations

import click

from mainspring.admin.views import ProcessView, process_id
from mainspring.cli.options import store_options
from mainspring.cli.output import document, table, when
from mainspring.cli.session import Access


@click.group()
def processes() -> None:
    """List workers and schedulers, and the jobs they run."""


@processes.command("list")
@click.option("--all", "everybody", is_flag=True, help="Ended processes too, as long as they are on record.")
@store_options
def list_processes(everybody: bool, access: Access, as_json: bool) -> None:
    """List live workers and schedulers by start time."""
    found = access.ask(lambda admin: admin.processes.aall())
    shown = [each for each in found if each.alive or everybody]
    if as_json:
        document([ProcessView.of(each) for each in shown])
        return
    titles = ["PROCESS", "ROLE", "NAME", "STARTED", "LEASE UNTIL", "ALIVE", "HOLDS", "QUEUES", "VERSION"]
    rows = [
        (
            process_id(each.id),
            each.role.value,
            each.name,
            when(each.started_at),
            when(each.lease_until),
            "yes" if each.alive else "no",
            each.holding,
            ",".join(each.queues) or None,
            each.version,
        )
        for each in shown
    ]
    table(titles, rows, none=f"no live process in {access.where()}")
