"""`db`: the schema of the store, and the database's id."""

from __future__ import annotations

import sys

import click

from mainspring.cli.options import author_option, one_line, store_options
from mainspring.cli.output import document, say
from mainspring.cli.session import Access


@click.group()
def db() -> None:
    """Migrate and verify the database; print its SQL."""


@db.command()
@author_option
@store_options
def migrate(author: str, access: Access, as_json: bool) -> None:
    """Bring the schema up to this version; safe to repeat."""
    applied = access.ask(lambda admin: admin.database.amigrate(), by=author, verify=False, create=True)
    if as_json:
        document({"applied": applied})
        return
    for name in applied:
        click.echo(f"applied {name}")
    say("the schema is up to date")


@db.command()
@store_options
def verify(access: Access, as_json: bool) -> None:
    """Exit 0 if the schema is this version's, else 1.

    It also prints the id of the database.
    """
    found = access.ask(lambda admin: admin.database.aidentity())
    if as_json:
        document({"current": True, "id": found})
    else:
        say(f"the schema is up to date; the database's id is {found}")


@db.command("new-id")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--force", is_flag=True, help="Also while processes are alive; restart them afterwards.")
@click.option("--note", type=one_line, metavar="TEXT", help="The reason, for the audit log.")
@author_option
@store_options
def new_id(yes: bool, force: bool, note: str | None, author: str, access: Access, as_json: bool) -> None:
    """Give a clone of a database a new id.

    The id is part of every ctx.token, and so of idempotency keys, webhook ids and message ids. A clone has
    its original's: where both call the same services, the work of one counts as done by the other. After
    this command every job of the database has another token, a job that was tried before too: do not use it
    on a backup that takes its original's place.
    """
    if not yes and not _agreed():
        say("nothing was changed")
        return

    old, new = access.ask(lambda admin: admin.database.arenew_identity(force=force, note=note), by=author)
    if as_json:
        document({"id": new, "was": old})
    else:
        click.echo(f"the database's id is {new}; it was {old}")


@db.command()
@click.option("--dialect", type=click.Choice(["sqlite", "postgresql"]), help="Default: the database URL's.")
@store_options
def sql(dialect: str | None, access: Access, as_json: bool) -> None:
    """Print the migrations as SQL, for other tools."""
    from mainspring.admin.database import script, steps

    if dialect is None:
        dialect = access.load().settings.database.url.partition(":")[0]
    if as_json:
        document(steps(dialect))
    else:
        click.echo(script(dialect), nl=False)


def _agreed() -> bool:
    if not sys.stdin.isatty():
        raise click.UsageError("--yes: expected, because there is no terminal to ask and every token changes")
    return click.confirm("Give this database a new id, and every job of it another token?", err=True)
