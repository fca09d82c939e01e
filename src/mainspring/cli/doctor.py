"""`doctor`: is everything as it should be?"""

from __future__ import annotations

import click

from mainspring.cli.errors import FAILED, UNREACHABLE
from mainspring.cli.options import store_options
from mainspring.cli.output import document, say, table
from mainspring.cli.session import Access


@click.command()
@store_options
@click.pass_context
def doctor(ctx: click.Context, access: Access, as_json: bool) -> None:
    """Check the database, the fleet and the queues; exit 1 if something fails, 3 if it cannot be reached."""
    from mainspring.admin.health.doctor import examine, unreachable
    from mainspring.admin.health.finding import Level

    checks = access.read(examine, verify=False)
    if as_json:
        document(checks)
    else:
        rows = [(each.level, each.name, each.sentence) for each in checks]
        table(["LEVEL", "CHECK", "FINDING"], rows, none="no checks")
    if unreachable(checks):
        say(f"the database is {access.where()}")
        ctx.exit(UNREACHABLE)
    ctx.exit(FAILED if any(each.level is Level.FAIL for each in checks) else 0)
