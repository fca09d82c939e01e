"""`status`, `doctor` and `check`: whether all is well, and whether new code fits the stored jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mainspring.cli.errors import FAILED, UNREACHABLE
from mainspring.cli.options import app_option, json_option, settings_options, store_options
from mainspring.cli.output import document, fields, line, say, table
from mainspring.cli.session import Access
from mainspring.clock import Clock
from mainspring.model.process import Role
from mainspring.store.store import Store

if TYPE_CHECKING:
    from mainspring.admin.health.status import Status


@click.command()
@app_option(required=True)
@click.option("--dead", is_flag=True, help="Check dead letters too, because they may be replayed.")
@settings_options
@json_option
@click.pass_context
def check(ctx: click.Context, dead: bool, access: Access, as_json: bool) -> None:
    """Check that stored jobs and schedules fit the new code.

    It compares queued jobs and stored schedules with the app's tasks, and lists those whose arguments do not
    fit. Run it with the new code before you deploy it. Exit 1 if there is one.
    """
    from mainspring.admin.deploy_check import Comparison, Source, compare

    async def look(store: Store, clock: Clock) -> Comparison:
        return await compare(store, clock, access.loaded._registry, dead=dead)

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
        table(["COUNT", "TASK", "PROBLEM", "EXAMPLES"], rows, none=f"{looked}: all fit")
        if rows:
            say(looked)
    ctx.exit(FAILED if problems else 0)


@click.command()
@store_options
@click.pass_context
def doctor(ctx: click.Context, access: Access, as_json: bool) -> None:
    """Check the database, the processes and the queues.

    Exit 1 if a check fails, 3 if the database cannot be reached.
    """
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


@click.command()
@click.option("--exit-code", is_flag=True, help="Exit 1 if something is wrong.")
@store_options
@click.pass_context
def status(ctx: click.Context, access: Access, exit_code: bool, as_json: bool) -> None:
    """Show what is wrong: missed slots, stuck jobs, queues.

    Exit 3 if the database cannot be reached; with --exit-code, exit 1 if something is wrong.
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
