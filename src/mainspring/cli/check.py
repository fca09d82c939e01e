"""`check`: would what is on record still bind to the code about to be deployed?"""

from __future__ import annotations

import click

from mainspring.cli.errors import FAILED
from mainspring.cli.options import app_argument, json_option, settings_options
from mainspring.cli.output import document, say, table
from mainspring.cli.session import Access
from mainspring.clock import Clock
from mainspring.store.store import Store


@click.command()
@app_argument()
@click.option("--dead", is_flag=True, help="Look at dead letters too: they may be replayed.")
@settings_options
@json_option
@click.pass_context
def check(ctx: click.Context, dead: bool, access: Access, as_json: bool) -> None:
    """Compare queued jobs and stored schedules with the app's tasks, and list what would not bind.

    Run it with the new code before you deploy it. Exit 1 if there is anything.
    """
    from mainspring.admin.deploy_check import Comparison, Source, compare

    async def look(store: Store, clock: Clock) -> Comparison:
        return await compare(store, clock, access.loaded.registry, dead=dead)

    comparison = access.read(look)
    problems, checked = comparison.problems(), comparison.checked
    if as_json:
        document(
            {
                "checked": {
                    "jobs": checked[Source.JOB],
                    "dead": checked[Source.DEAD],
                    "schedules": checked[Source.SCHEDULE],
                },
                "problems": problems,
            }
        )
    else:
        rows = [(each.count, each.task, each.sentence, ", ".join(each.examples)) for each in problems]
        looked = f"looked at {checked[Source.JOB]} jobs" + (
            f", {checked[Source.DEAD]} dead letters" if dead else ""
        )
        looked += f" and {checked[Source.SCHEDULE]} schedules of {access.where()}"
        table(["COUNT", "TASK", "PROBLEM", "EXAMPLES"], rows, none=f"{looked}: all would bind")
        if rows:
            say(looked)
    ctx.exit(FAILED if problems else 0)
