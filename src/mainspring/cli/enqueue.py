"""`enqueue`: put one job into its queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import click

from mainspring.admin.jobs import EnqueueRequest, job_of
from mainspring.admin.views import HandleView
from mainspring.cli.arguments import keywords, pairs, positional, value
from mainspring.cli.author import author_option
from mainspring.cli.options import APP_VARIABLE, Whole, length, moment, store_options
from mainspring.cli.output import document
from mainspring.cli.session import Access, refuse_memory, with_admin


@click.command()
@click.argument("words", nargs=-1, metavar="APP TASK [KEY=VALUE]...", required=True)
@click.option("--args", "listed", metavar="JSON", help="Positional arguments, as a JSON array.")
@click.option("--kwargs", "named", metavar="JSON", help="Keyword arguments, as a JSON object.")
@click.option("--delay", type=length, help="Not before this long from now: 10m.")
@click.option("--at", type=moment, metavar="ISO", help="Not before this moment: 2026-03-01T09:00:00+01:00.")
@click.option("--priority", type=Whole(), help="From -100 to 100; higher runs first.")
@click.option("--queue", help="Another queue than the task's own.")
@click.option("--key", help="Make no second job of this key.")
@click.option(
    "--scope", metavar="queued|finished", help="With a key: while its job waits, or until it ended."
)
@click.option("--period", type=length, help="With a key: for so long, whatever becomes of its job.")
@click.option("--on-duplicate", metavar="return|replace|error", help="What becomes of a second job.")
@click.option("--debounce", type=length, help="Run when no further one has come for so long.")
@click.option(
    "--expires", type=length, help="A dead letter unless it succeeds this long after it is due: 1h."
)
@author_option
@store_options
def enqueue(
    words: tuple[str, ...],
    listed: str | None,
    named: str | None,
    delay: timedelta | None,
    at: datetime | None,
    priority: int | None,
    queue: str | None,
    key: str | None,
    scope: str | None,
    period: timedelta | None,
    on_duplicate: str | None,
    debounce: timedelta | None,
    expires: timedelta | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Put one job into its queue; it is stored when this returns.

    For a parameter annotated str a VALUE is text; for others it is JSON if it reads as such, else
    text: count=3 name=Ada. APP may be left out when -A or MAINSPRING_APP names it.
    """
    if delay is not None and at is not None:
        raise click.UsageError("--delay and --at: expected one of them, not both")
    access, name, rest = _sorted_out(words, access)
    args, kwargs, texts = positional(listed), keywords(named), pairs(rest)
    app = access.load()
    task = app.registry.get(name)
    kwargs.update({each: value(each, text, task.signature.text_kind(each)) for each, text in texts.items()})
    wanted = EnqueueRequest(
        task=name,
        args=tuple(args),
        kwargs=kwargs,
        delay=delay,
        run_at=at,
        priority=priority,
        queue=queue,
        expires=expires,
        key=key,
        scope=scope,
        period=period,
        on_duplicate=on_duplicate,
        debounce=debounce,
    )
    job_of(task, wanted)  # wrong arguments are refused before a database is opened
    refuse_memory(app)
    [handle], _ = with_admin(app, lambda admin: admin.jobs.aenqueue([wanted]), by=author)
    if as_json:
        document(HandleView.of(handle))
    else:
        click.echo(str(handle) + ("" if handle.created else ", which was there already"))


def _sorted_out(words: Sequence[str], access: Access) -> tuple[Access, str, Sequence[str]]:
    # A task's name holds no "=", so a second word that does means that the app was left out.
    if len(words) > 1 and "=" not in words[1]:
        return replace(access, app=words[0]), words[1], words[2:]
    if access.app is None:
        raise click.UsageError(
            f"Missing argument: expected APP TASK, as in billing.py invoice, "
            f"or TASK alone with -A billing.py or {APP_VARIABLE}=billing.py."
        )
    return access, words[0], words[1:]
