"""`dead edit`: give a dead letter other arguments."""

from __future__ import annotations

import click

from mainspring.admin.dead_letters import Arguments
from mainspring.admin.views import DeadView
from mainspring.cli.arguments import keywords, pairs, positional, value
from mainspring.cli.author import author_option
from mainspring.cli.jobs import show_job
from mainspring.cli.options import JOB_ID, store_options
from mainspring.cli.output import document, say
from mainspring.cli.session import Access
from mainspring.declare.signature import TextKind
from mainspring.model.history import DeadJob


@click.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--args", "listed", metavar="JSON", help="Other positional arguments, as a JSON array.")
@click.option("--kwargs", "named", metavar="JSON", help="Other keyword arguments, as a JSON object.")
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="One keyword argument; may be repeated."
)
@author_option
@store_options
def edit(
    job_id: int,
    listed: str | None,
    named: str | None,
    sets: tuple[str, ...],
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Change the arguments of a dead letter; those it had stay on record, in `jobs show`.

    With -A the arguments are checked against the task's parameters, and a VALUE is read as they say;
    without, a VALUE is JSON if it reads as such, else text. What is not named stays as it is.
    """
    if listed is None and named is None and not sets:
        raise click.UsageError("nothing to change: expected --args, --kwargs or --set")
    args, kwargs, texts = positional(listed), keywords(named), pairs(sets)
    registry = None if access.app is None else access.load().registry

    def change(letter: DeadJob, had: Arguments) -> Arguments:
        task = None if registry is None else registry.get(letter.task)
        kind = (lambda _: TextKind.OTHER) if task is None else task.signature.text_kind
        now = had[0] if listed is None else args
        by_name = {
            **(had[1] if named is None else kwargs),
            **{k: value(k, t, kind(k)) for k, t in texts.items()},
        }
        if task is not None:
            task.check(now, by_name)
        return now, by_name

    letter, changed = access.ask(lambda admin: admin.dead_letters.aedit(job_id, change), by=author)
    if as_json:
        document(DeadView.of_letter(letter))
        return
    show_job(DeadView.of_letter(letter))
    say("edited" if changed else "its arguments are these already; nothing was changed")
