"""What people and programs read: aligned tables or one JSON document on stdout, messages on stderr.

There is no colour: a level or a state is a word, and reads the same in a terminal, a log and a pipe.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import click

_GAP = "  "
_NARROWEST = 8
_USUAL = 100


def printable(value: object) -> str:
    """The text on one line, with everything a terminal would obey written as an escape."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def say(message: str) -> None:
    """Tell the person at the terminal."""
    click.echo(message, err=True)


def document(value: object) -> None:
    """An answer as one JSON document. ASCII only, so that it survives every terminal and pipe."""
    from mainspring.admin.views import to_json  # not at the start: most commands print no JSON

    click.echo(json.dumps(to_json(value), indent=2))


def table(titles: Sequence[str], rows: Iterable[Sequence[object]], *, none: str) -> None:
    """Columns as wide as they need to be; on a terminal the last one is cut to fit. `none` is said
    on stderr when there is no row."""
    cells = [[_cell(value) for value in row] for row in rows]
    if not cells:
        say(none)
        return
    lines = [list(titles), *cells]
    widths = [max(len(line[column]) for line in lines) for column in range(len(titles))]
    for line in lines:
        padded = [text.ljust(width) for text, width in zip(line[:-1], widths, strict=False)]
        click.echo(_fit(_GAP.join([*padded, line[-1]])))


def fields(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line; absent values are left out."""
    shown = [(name, value) for name, value in pairs if value is not None]
    width = max(len(name) for name, _ in shown)
    for name, value in shown:
        click.echo(f"{name.ljust(width)}{_GAP}{_cell(value)}")


def line(text: str) -> None:
    """One line of our own, cut to fit a terminal; signs that stdout cannot write become escapes."""
    encoding = sys.stdout.encoding or "ascii"
    click.echo(_fit(text.rstrip()).encode(encoding, "backslashreplace").decode(encoding))


def width(*, most: int) -> int:
    """How many columns there are to draw in: those of the terminal, or as many as most have."""
    columns = shutil.get_terminal_size((_USUAL, 24)).columns if sys.stdout.isatty() else _USUAL
    return max(_NARROWEST, min(columns, most))


def when(moment: datetime | None) -> str | None:
    """A moment in UTC, to the second."""
    return None if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"


def block(text: str, *, indent: str = "  ") -> None:
    """Several lines of text that is not ours, such as a traceback."""
    for line in text.splitlines():
        click.echo(indent + printable(line))


def _cell(value: object) -> str:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    return "-" if value is None else printable(value)


def _fit(line: str) -> str:
    if not sys.stdout.isatty():
        return line.rstrip()
    width = max(shutil.get_terminal_size().columns, _NARROWEST)
    return (line if len(line) <= width else f"{line[: width - 1]}…").rstrip()
