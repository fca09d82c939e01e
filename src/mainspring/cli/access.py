"""`tokens` and `sessions`: who may come in from outside."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from mainspring.admin.admin import Admin
from mainspring.cli.options import LARGEST_ID, Whole, author_option, length, store_options
from mainspring.cli.options import name as a_name
from mainspring.cli.output import document, printable, say, table, when
from mainspring.cli.session import Access
from mainspring.model.access import NOUNS, AccessRole

if TYPE_CHECKING:
    from mainspring.admin.access import RoleOption

NUMBER = Whole(1, LARGEST_ID)


@click.group()
def tokens() -> None:
    """Make, list and revoke tokens: what programs and people come in with."""


@tokens.command()
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice([each.value for each in AccessRole]),
    required=True,
    help="viewer reads; operator also runs, pauses and cancels; admin also deletes and gives access.",
)
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(NOUNS),
    metavar="NOUN",
    help="Only this part, as often as needed: jobs, schedules, …; without it, everything.",
)
@click.option(
    "--expires", type=length, metavar="LENGTH", help="Ends after this long: 90d. Without it, never."
)
@author_option
@store_options
def create(
    name: str,
    role: RoleOption,
    scopes: tuple[str, ...],
    expires: timedelta | None,
    author: str,
    access: Access,
    as_json: bool,
) -> None:
    """Make a token for NAME. It is shown now and never again: only its digest is kept."""
    from mainspring.admin.access import NewTokenView

    made = access.ask(
        lambda admin: admin.tokens.acreate(name, role=role, scopes=scopes, expires=expires), by=author
    )
    if as_json:
        document(NewTokenView.of(made.token, secret=made.secret))
        return
    ends = "it does not expire" if made.token.expires_at is None else f"until {when(made.token.expires_at)}"
    say(printable(f"token {made.token.id} for {name}, {role}, {ends}; it is shown this once:"))
    click.echo(made.secret)


@tokens.command("list")
@store_options
def list_tokens(access: Access, as_json: bool) -> None:
    """Newest first, those that have ended too."""
    from mainspring.admin.access import TokenView

    found = access.ask(lambda admin: admin.tokens.aall())
    if as_json:
        document([TokenView.of(each) for each in found])
        return
    rows = [
        (
            each.id,
            each.name,
            each.role.value,
            ",".join(each.scopes) or "all",
            f"{each.hint}…",
            "alive" if each.alive else "revoked" if each.revoked_at else "expired",
            when(each.expires_at),
            when(each.last_used_at),
            each.author,
        )
        for each in found
    ]
    titles = ["ID", "NAME", "ROLE", "SCOPES", "TOKEN", "STATE", "EXPIRES", "LAST USED", "BY"]
    table(titles, rows, none=f"no tokens in {access.where()}; `mainspring tokens create` makes one")


@tokens.command()
@click.argument("token_id", metavar="ID", type=NUMBER)
@author_option
@store_options
def revoke(token_id: int, author: str, access: Access, as_json: bool) -> None:
    """End a token, and every session opened with it, at once."""
    done = access.ask(lambda admin: admin.tokens.arevoke(token_id), by=author)
    if as_json:
        document({"id": token_id, "changed": done})
    else:
        click.echo(f"token {token_id} " + ("revoked" if done else "had ended already; nothing was done"))


@click.group()
def sessions() -> None:
    """See which browsers are signed in, and sign them out."""


@sessions.command("list")
@store_options
def list_sessions(access: Access, as_json: bool) -> None:
    """Newest first."""
    from mainspring.admin.access import SessionView

    found = access.ask(lambda admin: admin.sessions.aall())
    if as_json:
        document([SessionView.of(each) for each in found])
        return
    rows = [
        (each.id, each.name, each.role.value, when(each.opened_at), when(each.seen_at), each.token_id)
        for each in found
    ]
    table(["ID", "NAME", "ROLE", "OPENED", "SEEN", "TOKEN"], rows, none="nobody is signed in")


@sessions.command()
@click.argument("session_id", metavar="[ID]", type=NUMBER, required=False)
@click.option("--name", type=a_name, help="Every session of this name.")
@author_option
@store_options
def end(session_id: int | None, name: str | None, author: str, access: Access, as_json: bool) -> None:
    """Sign out one browser, or all of one name, at once."""
    if (session_id is None) == (name is None):
        raise click.UsageError("expected either the ID of a session or --name")

    async def work(admin: Admin) -> int:
        if session_id is not None:
            await admin.sessions.aend(session_id)
            return 1
        return await admin.sessions.aend_of(name or "")

    count = access.ask(work, by=author)
    if as_json:
        document({"ended": count})
    else:
        click.echo(f"{count} ended")
