"""`verify`: did every slot happen, once?"""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from mainspring.admin.admin import Admin
from mainspring.admin.slot_verification.verification import Finding
from mainspring.admin.slot_verification.verifier import Report, ReportView, SlotVerifier
from mainspring.cli.errors import FAILED
from mainspring.cli.options import length, moment, store_options
from mainspring.cli.output import document, say, table, when
from mainspring.cli.session import Access, with_admin


@click.command()
@click.option("--from", "start", type=moment, metavar="ISO", help="Default: all that the ledger keeps.")
@click.option("--to", "end", type=moment, metavar="ISO", help="Default: now.")
@click.option("--schedule", "name", metavar="NAME", help="Only this one, which may have been deleted.")
@click.option("--late", type=length, default="60s", show_default=True, help="How late a slot may be.")
@click.option("--strict", is_flag=True, help="A late slot is a failure too.")
@store_options
@click.pass_context
def verify(
    ctx: click.Context,
    start: datetime | None,
    end: datetime | None,
    name: str | None,
    late: timedelta,
    strict: bool,
    access: Access,
    as_json: bool,
) -> None:
    """Check that every slot happened, and happened once.

    Exit 1 if a slot was missed, dropped, doubled, unexpected, early or lost. A slot that was dropped, because
    it was older than catch_up or the circuit breaker was open, is no finding any more once a backfill has run
    it.
    """
    app = access.load()
    keep = app.settings.retention.history

    async def verified(admin: Admin) -> Report:
        verifier = SlotVerifier(await admin.context.store(), app._clock, keep=keep)
        return await verifier.verify(start=start, end=end, name=name, late=late)

    report = with_admin(app, verified)
    if as_json:
        document(ReportView.of(report, strict=strict))
    else:
        _tell(report, strict=strict)
    ctx.exit(FAILED if report.wrong(strict=strict) else 0)


def _tell(report: Report, *, strict: bool) -> None:
    if report.findings:
        table(["FINDING", "SCHEDULE", "SLOT", "SLOTS", "DETAIL"], map(_row, report.findings), none="")
    for note in report.notes:
        say(note)
    click.echo(report.sentence(strict=strict))


def _row(finding: Finding) -> tuple[object, ...]:
    slot = when(finding.slot_at)
    if finding.until is not None:
        slot = f"{slot} to {when(finding.until)}"
    return finding.kind, finding.schedule, slot, finding.count, finding.detail
