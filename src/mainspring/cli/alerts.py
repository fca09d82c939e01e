"""`alerts`: what was told to whom, and a test of that."""

from __future__ import annotations

import asyncio
import sys

import click

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
    """See what is wrong and who was told; test the targets."""


@alerts.command("list")
@click.option("--open/--closed", "is_open", default=None, help="Only these.")
@click.option("--rule", type=click.Choice([each.value for each in Rule]), help="Only of this rule.")
@click.option("--subject", help="Only of this schedule, task, queue or process.")
@click.option("--before", type=ALERT_ID, help="Only those before this one.")
@click.option("--limit", type=Whole(1, 10_000), default=50, show_default=True)
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
    """Newest first."""
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
        say(printable(f"{target} did not take what it was sent: {note.problem}"))


@alerts.command()
@click.argument("alert_id", metavar="ID", type=ALERT_ID)
@store_options
def show(alert_id: int, access: Access, as_json: bool) -> None:
    """One alert, and what was said of it to whom."""
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
    table(["NOTE", "TARGET", "STATE", "TRIES", "AT", "PROBLEM"], rows, none="nobody is told of it")


@alerts.command()
@click.argument("alert_id", metavar="ID", type=ALERT_ID)
@author_option
@store_options
def ack(alert_id: int, author: str, access: Access, as_json: bool) -> None:
    """Say that somebody knows: an open alert is not repeated."""
    done = access.ask(lambda admin: admin.alerts.aack(alert_id), by=author)
    if as_json:
        document({"id": alert_id, "changed": done})
    else:
        said = "acknowledged" if done else "is over or was acknowledged already; nothing was done"
        click.echo(f"alert {alert_id} {said}")


@alerts.command()
@app_option
@settings_options
@json_option
def rules(access: Access, as_json: bool) -> None:
    """Every rule, whether it is on, and its thresholds."""
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
@click.option("--to", multiple=True, metavar="TARGET", help="Instead of the targets that are set.")
@author_option
@app_option
@settings_options
@json_option
@click.pass_context
def test(ctx: click.Context, to: tuple[str, ...], author: str, access: Access, as_json: bool) -> None:
    """Send a test alert and its recovery to every target; exit 1 if one does not take them."""
    from mainspring.admin.alerts import TriedView, testable
    from mainspring.admin.alerts import test as tried_on
    from mainspring.alerts.notification_sender import into_log
    from mainspring.cli.logs import set_up_logging
    from mainspring.telemetry.events import Telemetry
    from mainspring.telemetry.log import log_event

    app = access.load()
    set_up_logging(app.settings, sys.stderr, every_run=False)
    targets = testable(app.settings.alerts, app._clock, into_log(Telemetry(log_event)), to, any_target=True)
    tried = asyncio.run(tried_on(targets, app._clock, app._entropy, who=author))
    if as_json:
        document([TriedView.of(each) for each in tried])
    else:
        rows = [(each.target, each.kind, each.problem or "delivered") for each in tried]
        table(["TARGET", "NOTE", "CAME TO"], rows, none="no target is set: alerts.to is empty")
    ctx.exit(FAILED if any(each.problem for each in tried) else 0)
