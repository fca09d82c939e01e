"""`schedules create` and `schedules edit`: schedules that are made and changed at run time."""

from __future__ import annotations

import click

from mainspring.admin.schedules.draft import Written, draft_view, written_view
from mainspring.cli.author import author_option, one_line
from mainspring.cli.options import Whole, store_options
from mainspring.cli.output import document, fields, printable, say, table, when
from mainspring.cli.schedule_options import CLEARABLE, said, schedule_options
from mainspring.cli.session import Access

_CALL = {"task", "args", "kwargs"}
note_option = click.option("--note", type=one_line, metavar="TEXT", help="Why, for the history.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Say what would be written; write nothing.")


@click.command()
@click.argument("name")
@click.option("--task", required=True, metavar="TASK", help="The task it runs.")
@schedule_options
@note_option
@dry_run_option
@author_option
@store_options
def create(
    name: str,
    note: str | None,
    dry_run: bool,
    author: str,
    access: Access,
    as_json: bool,
    **typed: object,
) -> None:
    """Make a schedule at run time: one of --cron, --every, --rrule and --at, and what goes with it.

    An app named by -A or MAINSPRING_APP must declare the task, and its arguments are checked.
    """
    options = said(typed)
    written = access.ask(
        lambda admin: admin.schedules.acreate(name, note=note, dry_run=dry_run, **options), by=author
    )
    _report(written, as_json=as_json)
    _tell_unchecked(access)


@click.command()
@click.argument("name")
@click.option("--task", metavar="TASK", help="Another task.")
@schedule_options
@click.option(
    "--clear",
    "cleared",
    multiple=True,
    type=click.Choice(CLEARABLE),
    metavar="OPTION",
    help="Back to its default: --clear end; may be given several times.",
)
@click.option("--if-version", type=Whole(1), metavar="N", help="Refuse unless it is at this version.")
@note_option
@dry_run_option
@author_option
@store_options
def edit(
    name: str,
    cleared: tuple[str, ...],
    if_version: int | None,
    note: str | None,
    dry_run: bool,
    author: str,
    access: Access,
    as_json: bool,
    **typed: object,
) -> None:
    """Change some options of a schedule; those that are not given stay as they are.

    From then on what code declares of it is left aside, until `hand-back`. Another kind of trigger
    keeps bounds, calendar and, where it has one, the zone.
    """
    options = said(typed, cleared)
    written = access.ask(
        lambda admin: admin.schedules.aedit(
            name, note=note, expected_version=if_version, dry_run=dry_run, **options
        ),
        by=author,
    )
    _report(written, as_json=as_json)
    if _CALL & options.keys():
        _tell_unchecked(access)


def _report(written: Written, *, as_json: bool) -> None:
    if as_json:
        document(written_view(written))
        return
    click.echo(printable(f"schedule {written.name} {_outcome(written)}"))
    if written.created:
        fields((name.replace("_", " "), value) for name, value in draft_view(written.draft).items())
    elif written.differences:
        table(["FIELD", "WAS", "NOW"], [(d.field, d.was, d.now) for d in written.differences], none="")
    click.echo()
    rows = [(when(each.at), f"{each.local:%a %Y-%m-%d %H:%M:%S %Z}", each.note) for each in written.fires]
    table(["NEXT (UTC)", written.draft.tz(), "NOTE"], rows, none="it does not fire again")
    if written.paused:
        say("it is paused: its slots are skipped until it is resumed")


def _outcome(written: Written) -> str:
    if written.effect == "none":
        return f"is so already, at version {written.version}; nothing was changed"
    if written.dry_run:
        return f"would be {written.effect}; nothing was written"
    return f"{written.effect}, version {written.version}"


def _tell_unchecked(access: Access) -> None:
    if access.app is None:
        say("no app was named, so nobody checked the task and its arguments; -A APP does")
