"""The `schedules` commands that change something: create, edit, apply, pause, trigger, skip, delete."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import click

from mainspring.admin.schedules.draft import Written, WrittenView, draft_view
from mainspring.admin.schedules.orders import ScheduleDone, ScheduleDoneView, ScheduleEffect
from mainspring.admin.schedules.plan import MOST_NAMED, Action, Planned, PlannedView, dropped_sentences
from mainspring.admin.words import moment
from mainspring.cli.options import (
    Whole,
    app_option,
    author_option,
    json_option,
    keywords,
    one_line,
    positional,
    seconds_or_text,
    settings_options,
    store_options,
)
from mainspring.cli.output import document, fields, printable, say, table, when
from mainspring.cli.session import Access, with_admin

MOST_SKIPS = 1000


MOST_SHOWN = 100
"""Lines of a table: an app may declare a hundred thousand schedules."""


_CALL = {"task", "args", "kwargs"}


_DURATIONS = ("every", "catch_up", "window", "jitter", "expect_start_within", "expect_finish_by")


_FLAGS: Sequence[tuple[str, str, Whole | None, str]] = (
    ("--cron", "EXPR", None, "A cron expression: '30 2 * * *'."),
    ("--every", "DURATION", None, "An interval: 90m."),
    ("--rrule", "RULE", None, "An RFC 5545 rule, with --dtstart."),
    ("--tz", "ZONE", None, "The zone of --cron or --rrule, such as Europe/Berlin."),
    ("--gap", "shift|skip", None, "Local times that do not exist."),
    ("--fold", "first|second|both", None, "Local times that come twice."),
    ("--anchor", "ISO", None, "An instant that --every counts from."),
    ("--dtstart", "ISO", None, "The start of the rule; local time if it has no offset."),
    ("--start", "ISO", None, "No slots before this."),
    ("--end", "ISO", None, "No slots from this on."),
    ("--max-fires", "N", Whole(), "How many slots may fire in all."),
    ("--calendar", "NAME", None, "Business days, by the newest calendar on record of this name."),
    ("--on-holiday", "skip|next|previous", None, "What happens to a slot that is not on a business day."),
    ("--args", "JSON", None, "Positional arguments, as a JSON array."),
    ("--kwargs", "JSON", None, "Keyword arguments, as a JSON object."),
    ("--misfire", "latest|all|skip", None, "What happens to missed slots."),
    ("--catch-up", "DURATION", None, "How old a missed slot may be."),
    ("--overlap", "POLICY", None, "While a job of it is live: skip, queue_one, queue_all, allow or replace."),
    ("--allow", "N", Whole(), "How many of its jobs may be live at once."),
    (
        "--window",
        "DURATION",
        None,
        "Spread schedules: each fires at a fixed place in this time after its slot.",
    ),
    ("--jitter", "DURATION", None, "A random delay, at most this long."),
    ("--expect-start-within", "DURATION", None, "Alert when a job has not started so long after its slot."),
    ("--expect-finish-by", "DURATION", None, "Alert when a job has not ended so long after its slot."),
    ("--queue", "QUEUE", None, "Another queue than the task's own."),
    ("--priority", "N", Whole(), "From -100 to 100; higher runs first."),
    ("--attempts", "N", Whole(), "How many times a job is tried."),
)


_LISTS = (
    ("--at", "at", "An instant; may be given several times."),
    ("--exdate", "exdates", "An instant that --rrule leaves out; may be given several times."),
    ("--rdate", "rdates", "An instant besides those of --rrule; may be given several times."),
)


CLEARABLE = [flag[2:] for flag, *_ in _FLAGS[3:]] + ["exdates", "rdates"]


names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...")


note_option = click.option("--note", type=one_line, metavar="TEXT", help="The reason, for the history.")


dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")


def schedule_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given each option by its name; None or nothing where it was not typed."""
    for flag, field, words in reversed(_LISTS):
        command = click.option(flag, field, multiple=True, metavar="ISO", help=words)(command)
    for flag, metavar, kind, words in reversed(_FLAGS):
        command = click.option(flag, metavar=metavar, type=kind, help=words)(command)
    return command


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
    """Make a schedule at run time.

    Give one of --cron, --every, --rrule and --at. An app named by -A or MAINSPRING_APP must declare the
    task, and the arguments are checked.
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
    help="Reset to the default: --clear end; may be given several times.",
)
@click.option("--if-version", type=Whole(1), metavar="N", help="Only if the schedule is at this version.")
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
    """Change options of a schedule; others stay.

    From then on the declaration in the code is ignored, until `revert`. A trigger of another kind keeps
    the bounds, the calendar and, where it has one, the zone.
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


@click.command("revert")
@names_argument
@click.option("--note", type=one_line, metavar="TEXT", help="The reason, for the audit log.")
@author_option
@store_options
def revert(names: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Let the code decide again about edited schedules.

    Nothing changes before an app writes its schedules. A schedule that no app declares can be deleted with
    `apply --prune`.
    """
    report(
        access.ask(lambda admin: admin.schedules.arevert(names, note=note), by=author),
        as_json=as_json,
    )


@click.command("plan")
@app_option(required=True)
@settings_options
@json_option
def plan_command(access: Access, as_json: bool) -> None:
    """Show what `apply` would add, change and remove.

    Nothing is written.
    """
    app = access.load()
    _show_plan(with_admin(app, lambda admin: admin.schedules.aplan()), as_json=as_json)


@click.command("apply")
@app_option(required=True)
@click.option("--prune", is_flag=True, help="Also delete schedules that the code no longer declares.")
@author_option
@settings_options
@json_option
def apply_command(access: Access, prune: bool, author: str, as_json: bool) -> None:
    """Write the app's schedules; edited ones stay."""
    app = access.load()
    found = with_admin(app, lambda admin: admin.schedules.aapply(prune=prune), by=author)
    _show_plan(found, as_json=as_json)
    for sentence in dropped_sentences(found):
        say(f"Warning: {printable(sentence)}")
    left = [each.name for each in found if each.action is Action.REMOVE]
    if left and not prune:
        told = ", ".join(left[:MOST_NAMED])
        more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
        say(f"still stored, and firing: {told}{more}; --prune deletes them")


@click.command()
@names_argument
@click.option("--note", type=one_line, metavar="TEXT", help="The reason, shown while it is paused.")
@author_option
@store_options
def pause(names: tuple[str, ...], note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Skip the slots of schedules until they are resumed."""
    report(
        access.ask(lambda admin: admin.schedules.apause(names, note=note), by=author),
        as_json=as_json,
    )


@click.command()
@names_argument
@author_option
@store_options
def resume(names: tuple[str, ...], author: str, access: Access, as_json: bool) -> None:
    """End the pause; its slots are not caught up."""
    report(
        access.ask(lambda admin: admin.schedules.aresume(names), by=author),
        as_json=as_json,
    )


@click.command()
@names_argument
@author_option
@store_options
def trigger(names: tuple[str, ...], author: str, access: Access, as_json: bool) -> None:
    """Make a job of schedules now, besides their slots.

    Paused schedules can be triggered too.
    """
    access.each(
        names,
        lambda admin, name: admin.schedules.atrigger(name),
        by=author,
        said=lambda _, done: f"job {done.job_id} ({done.task} in {done.queue})",
        view=lambda _, done: done,
        as_json=as_json,
    )


@click.command()
@click.argument("name")
@click.option(
    "--count", type=Whole(1, MOST_SKIPS), default=1, show_default=True, help="How many slots to skip."
)
@author_option
@store_options
def skip(name: str, count: int, author: str, access: Access, as_json: bool) -> None:
    """Skip the next slots of a schedule.

    The count is added to the slots that are to be skipped already.
    """
    done = access.ask(lambda admin: admin.schedules.askip(name, count), by=author)
    if as_json:
        document(done)
    else:
        slots = "slot" if done.skips == 1 else f"{done.skips} slots"
        click.echo(printable(f"schedule {done.name}: its next {slots} will be skipped"))


@click.command()
@names_argument
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@author_option
@store_options
def delete(names: tuple[str, ...], yes: bool, author: str, access: Access, as_json: bool) -> None:
    """Delete schedules; their history and jobs stay."""
    if not yes and not _agreed():
        say("nothing was deleted")
        return
    report(
        access.ask(lambda admin: admin.schedules.adelete(names), by=author),
        as_json=as_json,
    )


def report(done: Sequence[ScheduleDone], *, as_json: bool) -> None:
    """Say what became of each; what was so already is no failure."""
    if as_json:
        document([ScheduleDoneView.of(each) for each in done])
        return
    for each in done:
        said = (
            f"{each.why}; nothing was done"
            if each.effect is ScheduleEffect.NONE
            else each.effect.replace("_", " ")
        )
        click.echo(printable(f"schedule {each.name} {said}"))


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError(
            "--yes: expected, because there is no terminal to ask and deleting cannot be undone"
        )
    return click.confirm("Delete these schedules?", err=True)


def _report(written: Written, *, as_json: bool) -> None:
    if as_json:
        document(WrittenView.of(written))
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
        say("no app was named, so the task and its arguments were not checked; -A APP checks them")


def said(typed: Mapping[str, object], cleared: Sequence[str] = ()) -> dict[str, object]:
    """What was typed, as the editor takes it: None for what is to be cleared."""
    found: dict[str, object] = {name: value for name, value in typed.items() if value not in (None, ())}
    for option in cleared:
        name = option.replace("-", "_")
        if name in found:
            raise click.UsageError(f"--clear {option}: expected without a value for it")
        found[name] = None
    for name in _DURATIONS:
        if isinstance(text := found.get(name), str):
            found[name] = seconds_or_text(text)
    if isinstance(text := found.get("args"), str):
        found["args"] = positional(text)
    if isinstance(text := found.get("kwargs"), str):
        found["kwargs"] = keywords(text)
    return found


def _show_plan(planned: list[Planned], *, as_json: bool) -> None:
    """A plan, as a table or a document."""
    if as_json:
        document([PlannedView.of(each) for each in planned])
        return
    shown = planned
    if len(planned) > MOST_SHOWN:
        # What stays as it is goes last, and what does not fit is counted.
        shown = sorted(planned, key=lambda each: each.action is Action.SAME)[:MOST_SHOWN]
    rows = [(each.action.value, each.name, _changes(each), _fires(each)) for each in shown]
    table(["ACTION", "NAME", "CHANGES", "NEXT"], rows, none="no schedules declared, and none on record")
    if len(planned) > MOST_SHOWN:
        counts = Counter(each.action for each in planned)
        of_each = ", ".join(f"{action} {counts[action]}" for action in Action if counts[action])
        say(f"{len(planned)} schedules in all: {of_each}; --json lists each")


def _changes(planned: Planned) -> str:
    changes = ", ".join(f"{each.field} {each.was} -> {each.now}" for each in planned.differences)
    if planned.action is Action.KEEP:
        advice = f"`schedules revert {planned.name}` lets code have it"
        return printable(f"edited at run time, so it stays ({advice}); code says: {changes}")
    return printable(changes) or "-"


def _fires(planned: Planned) -> str:
    return ", ".join(moment(each) for each in planned.next_fires) or "-"
