"""Who gives an order: the name that a schedule's history will show."""

from __future__ import annotations

from collections.abc import Callable

import click

from mainspring.admin.order import login_name
from mainspring.errors import shown


def author_option(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given an `author`."""
    return click.option(
        "--by",
        "author",
        metavar="WHO",
        default=login_name,
        type=one_line,
        show_default="your login name",
        help="Who is put on record.",
    )(command)


def one_line(text: str) -> str:
    """Text for the record; what would disturb a terminal is refused before it is stored."""
    if not text.strip() or not text.isprintable():
        raise click.BadParameter(f"expected one line of text, got {shown(text)}")
    return text.strip()
