"""`audit-log`: the audit log, and the check that no entry of it was changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mainspring.cli.errors import FAILED
from mainspring.cli.options import LARGEST_ID, Whole, store_options
from mainspring.cli.output import document, say, table, when
from mainspring.cli.session import Access
from mainspring.errors import shown
from mainspring.model.audit_log import AuditFilter

if TYPE_CHECKING:
    from mainspring.admin.audit_log import RecordedOrder

LARGEST_PAGE = 1000
_KNOWN = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


@click.group()
def audit_log() -> None:
    """Read the audit log, and check that it is whole."""


@audit_log.command("list")
@click.option("--action", help="Only this order, such as jobs.cancel.")
@click.option("--actor", help="Only orders of this actor.")
@click.option("--object", help="Only orders about this id or name.")
@click.option("--before", type=Whole(1, LARGEST_ID), metavar="ID", help="Only entries before this one.")
@click.option("--limit", type=Whole(1, LARGEST_PAGE), default=50, show_default=True, help="How many to list.")
@store_options
def list_entries(
    action: str | None,
    actor: str | None,
    object: str | None,
    before: int | None,
    limit: int,
    access: Access,
    as_json: bool,
) -> None:
    """List orders, newest first.

    An order in doubt is still being carried out, or its process died.
    """
    from mainspring.admin.audit_log import AuditEntryView

    which = AuditFilter(action=action, actor=actor, object=object, before=before, limit=limit)
    found = access.ask(lambda admin: admin.audit_log.afind(which))
    if as_json:
        document([AuditEntryView.of(each) for each in found])
        return
    titles = ["ID", "AT", "ACTOR", "VIA", "ACTION", "OUTCOME", "OBJECT"]
    table(titles, map(_row, found), none=f"no entries in {access.where()}")


@audit_log.command()
@click.option(
    "--known", metavar="ID:DIGEST", help="A head that an earlier check printed and that you kept elsewhere."
)
@store_options
@click.pass_context
def verify(ctx: click.Context, known: str | None, access: Access, as_json: bool) -> None:
    """Check that no entry was changed or removed.

    Exit 1 at the first entry that was.
    """
    from mainspring.admin.audit_log import VerifiedView

    start = _known(known)
    told = access.ask(lambda admin: admin.audit_log.averify(known=start))
    if as_json:
        document(VerifiedView.of(told))
    elif told.sound:
        click.echo(f"{told.entries} entries, and none was changed or removed")
        say(f"head {told.entries}:{told.head.hex()} (keep it in another place: --known checks against it)")
    else:
        say(f"entry {told.bad_id}: {told.why}; the {told.entries} before it are what was appended")
    ctx.exit(0 if told.sound else FAILED)


def _known(text: str | None) -> tuple[int, bytes] | None:
    if text is None:
        return None
    match = _KNOWN.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"expected the head of an earlier check, 42:9f…, got {shown(text)}")
    return int(match[1]), bytes.fromhex(match[2])


def _row(told: RecordedOrder) -> Sequence[object]:
    entry = told.entry
    return entry.id, when(entry.at), entry.actor, entry.via, entry.action, told.outcome, entry.object or None
