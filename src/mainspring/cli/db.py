"""`db`: the schema of the store."""

from __future__ import annotations

import click

from mainspring.cli.options import store_options
from mainspring.cli.output import document, say
from mainspring.cli.session import Access


@click.group()
def db() -> None:
    """Migrate the database, check it, or print its SQL."""


@db.command()
@store_options
def migrate(access: Access, as_json: bool) -> None:
    """Bring the schema up to this version. Safe to repeat, and in several places at once."""
    applied = access.ask(lambda store, clock: store.migrate(), verify=False, create=True)
    if as_json:
        document({"applied": applied})
        return
    for name in applied:
        click.echo(f"applied {name}")
    say("the schema is up to date")


@db.command()
@store_options
def verify(access: Access, as_json: bool) -> None:
    """Exit 0 if the schema is exactly this version's, 1 if not."""
    access.ask(lambda store, clock: store.verify(), verify=False)
    if as_json:
        document({"current": True})
    else:
        say("the schema is up to date")


@db.command()
@click.option("--dialect", type=click.Choice(["sqlite", "postgresql"]), help="Default: the database URL's.")
@store_options
def sql(dialect: str | None, access: Access, as_json: bool) -> None:
    """Print the migrations as SQL, for those who apply them with their own tool."""
    from mainspring.ops.schema import script, steps

    if dialect is None:
        dialect = access.load().settings.database.url.partition(":")[0]
    if as_json:
        document(steps(dialect))
    else:
        click.echo(script(dialect), nl=False)
