"""`status`: is all well? For people, and for whoever watches over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mainspring.cli.errors import FAILED
from mainspring.cli.options import store_options
from mainspring.cli.output import document, fields, line, table
from mainspring.cli.session import Access
from mainspring.clock import Clock
from mainspring.model.fleet import Role
from mainspring.store.store import Store

if TYPE_CHECKING:
    from mainspring.admin.health.status import Status


@click.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 if something is wrong.")
@store_options
@click.pass_context
def status(ctx: click.Context, access: Access, exit_code: bool, as_json: bool) -> None:
    """Say what is wrong: slots missed, queues without a worker, jobs that wait or died.

    Exit code 3 means that the database cannot be reached, 1 with --exit-code that something is wrong.
    """
    from mainspring.admin.health.status import StatusView, age, look, short, troubles

    async def asked(store: Store, clock: Clock) -> Status:
        return await look(store, clock, access.loaded.settings.alerts)

    found = access.read(asked)
    wrong = troubles(found, access.loaded.settings.alerts)
    if as_json:
        document(StatusView.of(found, wrong))
    else:
        for each in wrong:
            line(f"{each.severity}: {each.sentence}")
        fields(
            [
                ("state", "trouble" if wrong else "ok"),
                ("workers", found.alive(Role.WORKER)),
                ("schedulers", found.alive(Role.SCHEDULER)),
                ("scheduler lag", short(found.lag)),
                ("dead letters", found.dead),
            ]
        )
        rows = [(q.name, q.ready, q.running, q.workers, short(age(q, found.at))) for q in found.queues]
        table(["QUEUE", "READY", "RUNNING", "WORKERS", "OLDEST READY"], rows, none="no queue has jobs")
    ctx.exit(FAILED if wrong and exit_code else 0)
