"""`alerts`: the alerts, the messages about them, and a test of where they go."""

from __future__ import annotations

import sys

import click

from mainspring.admin.admin import Admin
from mainspring.cli.errors import FAILED
from mainspring.cli.options import (
    ALERT_ID,
    Whole,
    app_option,
    author_option,
    json_option,
    settings_options,
    store_options,
)
from mainspring.cli.output import document, fields, printable, say, table, when
from mainspring.cli.session import Access
from mainspring.model.alert import AlertFilter, Rule


@click.group()
def alerts() -> None:
    """List and acknowledge alerts; test where they go."""


@alerts.command("list")
@click.option("--open/--closed", "is_open", default=None, help="Only open or only closed alerts.")
@click.option(
    "--rule",
    type=click.Choice([each.value for each in Rule]),
    metavar="RULE",
    help="Only this rule; `alerts rules` lists them.",
)
@click.option("--subject", help="Only of this schedule, task, queue or process.")
@click.option("--before", type=ALERT_ID, help="Only ids below this one, to read the next page.")
@click.option("--limit", type=Whole(1, 10_000), default=50, show_default=True, help="How many to list.")
@store_options
def list_alerts(
    is_open: bool | None,
    rule: str | None,
    subject: str | None,
    before: int | None,
    limit: int,
    access: Access,
    as_json: bool,
) -> None:
    """List alerts, newest first."""
    from mainspring.admin.alerts import AlertView

    which = AlertFilter(
        open=is_open, rule=Rule(rule) if rule else None, subject=subject, before=before, limit=limit
    )
    found = access.ask(lambda admin: admin.alerts.afind(which))
    undelivered = access.ask(lambda admin: admin.alerts.aundelivered())
    if as_json:
        document([AlertView.of(each) for each in found])
    else:
        rows = [
            (
                each.id,
                "open" if each.closed_at is None else "recovered",
                each.severity,
                each.rule,
                each.subject,
                when(each.opened_at),
                when(each.closed_at),
                each.sentence,
            )
            for each in found
        ]
        titles = ["ID", "STATE", "SEVERITY", "RULE", "SUBJECT", "OPENED", "CLOSED", "SENTENCE"]
        table(titles, rows, none=f"no alerts in {access.where()}")
    for target, note in {each.shown: each for each in reversed(undelivered)}.items():
        say(printable(f"{target} did not accept the last message: {note.problem}"))


@alerts.command()
@click.argument("alert_id", metavar="ID", type=ALERT_ID)
@store_options
def show(alert_id: int, access: Access, as_json: bool) -> None:
    """Show one alert and the messages sent about it."""
    from mainspring.admin.alerts import AlertDetail

    found = access.ask(lambda admin: admin.alerts.aget(alert_id))
    if as_json:
        document(AlertDetail.of_shown(found))
        return
    alert = found.alert
    acked = None if alert.acked_at is None else f"by {alert.acked_by} at {when(alert.acked_at)}"
    fields(
        [
            ("id", alert.id),
            ("rule", alert.rule),
            ("subject", alert.subject),
            ("severity", alert.severity),
            ("sentence", alert.sentence),
            ("since", when(alert.since)),
            ("opened", when(alert.opened_at)),
            ("closed", when(alert.closed_at)),
            ("acknowledged", acked),
        ]
    )
    rows = [
        (each.kind, each.shown, each.state, each.tries, when(each.ended_at or each.due_at), each.problem)
        for each in found.notes
    ]
    table(["NOTE", "TARGET", "STATE", "TRIES", "AT", "PROBLEM"], rows, none="no message was sent about it")


@alerts.command()
@click.argument("alert_ids", metavar="ID...", type=ALERT_ID, nargs=-1, required=True)
@author_option
@store_options
def ack(alert_ids: tuple[int, ...], author: str, access: Access, as_json: bool) -> None:
    """Acknowledge open alerts, so that they are not repeated."""
    was_so = "is over or was acknowledged already; nothing was done"
    access.each(
        alert_ids,
        lambda admin, alert_id: admin.alerts.aack(alert_id),
        by=author,
        said=lambda alert_id, done: f"alert {alert_id} {'acknowledged' if done else was_so}",
        view=lambda alert_id, done: {"id": alert_id, "changed": done},
        as_json=as_json,
    )


@alerts.command()
@app_option()
@settings_options
@json_option
def rules(access: Access, as_json: bool) -> None:
    """List the rules, with their thresholds."""
    from mainspring.admin.alerts import rules as every

    found = every(access.load().settings.alerts)
    if as_json:
        document(found)
        return
    rows = [
        (
            each.rule,
            "on" if each.on else "off",
            ", ".join(f"{name} {value}" for name, value in each.thresholds.items()) or None,
            each.words,
        )
        for each in found
    ]
    table(["RULE", "", "THRESHOLDS", "TELLS OF"], rows, none="no rules")


@alerts.command()
@click.option("--to", multiple=True, metavar="TARGET", help="Another target instead of those in alerts.to.")
@author_option
@store_options
@click.pass_context
def test(ctx: click.Context, to: tuple[str, ...], author: str, access: Access, as_json: bool) -> None:
    """Send a test alert and its recovery to every target.

    Exit 1 if a target does not take them. The test is in the audit log.
    """
    from mainspring.admin.alerts import Tried, TriedView, testable
    from mainspring.alerts.notification_sender import into_log
    from mainspring.cli.logs import set_up_logging
    from mainspring.telemetry.events import Telemetry
    from mainspring.telemetry.log import log_event

    async def work(admin: Admin) -> list[Tried]:
        settings, clock = admin.context.settings, admin.context.clock
        set_up_logging(settings, sys.stderr, every_run=False)
        log = into_log(Telemetry(log_event))
        return await admin.alerts.atest(testable(settings.alerts, clock, log, to, any_target=True))

    tried = access.ask(work, by=author)
    if as_json:
        document([TriedView.of(each) for each in tried])
    else:
        rows = [(each.target, each.kind, each.problem or "delivered") for each in tried]
        table(["TARGET", "NOTE", "RESULT"], rows, none="no target is set: alerts.to is empty")
    ctx.exit(FAILED if any(each.problem for each in tried) else 0)
