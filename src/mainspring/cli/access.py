"""`tokens` and `sessions`: who may come in from outside."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

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
    """Make, list and revoke tokens for the HTTP API."""


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
    help="Only this part of the API, such as jobs; may be given several times. Default: everything.",
)
@click.option(
    "--expires", type=length, metavar="LENGTH", help="It expires after this long: 90d. Default: never."
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
    """Make a token for NAME and show it, once.

    Only its digest is stored.
    """
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
    """List tokens, newest first; ended ones too."""
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
@click.argument("token_ids", metavar="ID...", type=NUMBER, nargs=-1, required=True)
@author_option
@store_options
def revoke(token_ids: tuple[int, ...], author: str, access: Access, as_json: bool) -> None:
    """End tokens at once, and every session opened with them."""
    access.each(
        token_ids,
        lambda admin, token_id: admin.tokens.arevoke(token_id),
        by=author,
        said=lambda token_id, done: (
            f"token {token_id} {'revoked' if done else 'had ended already; nothing was done'}"
        ),
        view=lambda token_id, done: {"id": token_id, "changed": done},
        as_json=as_json,
    )


@click.group()
def sessions() -> None:
    """List signed-in browsers, and sign them out."""


@sessions.command("list")
@store_options
def list_sessions(access: Access, as_json: bool) -> None:
    """List sessions, newest first."""
    from mainspring.admin.access import SessionView

    found = access.ask(lambda admin: admin.sessions.aall())
    if as_json:
        document([SessionView.of(each) for each in found])
        return
    rows = [
        (each.id, each.name, each.role.value, when(each.opened_at), when(each.seen_at), each.token_id)
        for each in found
    ]
    table(["ID", "NAME", "ROLE", "OPENED", "SEEN", "TOKEN"], rows, none="no browser is signed in")


@sessions.command()
@click.argument("session_ids", metavar="[ID]...", type=NUMBER, nargs=-1)
@click.option("--name", type=a_name, help="Every session of this name.")
@author_option
@store_options
def end(session_ids: tuple[int, ...], name: str | None, author: str, access: Access, as_json: bool) -> None:
    """Sign out browsers by session ID, or all of one name, at once."""
    if bool(session_ids) == (name is not None):
        raise click.UsageError("expected either the IDs of sessions or --name")
    if name is None:
        access.each(
            session_ids,
            lambda admin, session_id: admin.sessions.aend(session_id),
            by=author,
            said=lambda session_id, _: f"session {session_id} ended",
            view=lambda session_id, _: {"id": session_id, "changed": True},
            as_json=as_json,
        )
        return
    count = access.ask(lambda admin: admin.sessions.aend_of(name), by=author)
    if as_json:
        document({"ended": count})
    else:
        click.echo(f"{count} ended")
