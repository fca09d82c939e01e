"""`doctor`: is everything as it should be?"""

from __future__ import annotations

import click

from mainspring.cli.errors import FAILED, UNREACHABLE
from mainspring.cli.options import store_options
from mainspring.cli.output import document, printable
from mainspring.cli.session import Access

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@store_options
@click.option("--no-color", is_flag=True, envvar="NO_COLOR", hidden=True)
@click.pass_context
def doctor(
    ctx: click.Context,
    access: Access,
    as_json: bool,
    no_color: bool,
) -> None:
    """Check the database, the fleet and the queues; exit 1 if something fails, 3 if it cannot be reached."""
    from mainspring.ops.doctor import Level, examine, unreachable

    checks = access.ask(examine, verify=False)
    if as_json:
        document([{"name": each.name, "level": each.level, "sentence": each.sentence} for each in checks])
    else:
        width = max(len(each.name) for each in checks)
        for each in checks:
            level = each.level.ljust(4)
            shown = level if no_color else click.style(level, fg=_COLOURS[each.level])
            click.echo(f"{shown}  {each.name.ljust(width)}  {printable(each.sentence)}")
    if unreachable(checks):
        ctx.exit(UNREACHABLE)
    ctx.exit(FAILED if any(each.level is Level.FAIL for each in checks) else 0)
