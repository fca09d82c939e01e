"""Options and arguments that several commands share, and the kinds of values they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn

import click

from mainspring.admin.order import login_name
from mainspring.cli.session import Access
from mainspring.duration import duration
from mainspring.errors import InvalidArgument, shown
from mainspring.tasks.payload import NotJSON, read_json
from mainspring.tasks.signature import TextKind

LARGEST_ID = 2**63 - 1


APP_VARIABLE = "MAINSPRING_APP"
_TYPED = click.core.ParameterSource.COMMANDLINE


_DIGITS = re.compile(r"-?[0-9]{1,20}")


_MOMENT = "a moment such as 2026-03-01T09:00:00+01:00"


_ARRAY, _OBJECT = "a JSON array", "a JSON object"


class Whole(click.IntRange):
    """A whole number in the digits 0 to 9: `int()` takes 1_000, +5 and the digits of every script."""

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        super().__init__(min, max)
        self.name = "integer"

    def _describe_range(self) -> str:
        if self.max is not None and self.max < LARGEST_ID:
            return f"{self.min} to {self.max}"
        return "" if self.min is None else f"{self.min} or more"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not _DIGITS.fullmatch(value):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return super().convert(value, param, ctx)


class _Id(Whole):
    name = "id"

    def __init__(self, noun: str) -> None:
        super().__init__(1, LARGEST_ID)
        self._noun = noun

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"expected the number of a {self._noun}, such as 42, got {shown(value)}", param, ctx)


JOB_ID, WORKFLOW_ID, ALERT_ID = _Id("job"), _Id("workflow"), _Id("alert")


def seconds_or_text(text: str) -> int | str:
    """A bare number counts seconds; anything else is for `duration` to read."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else text


def length(text: str) -> timedelta:
    """A duration; a bare number counts seconds."""
    try:
        return duration(seconds_or_text(text), "duration")
    except InvalidArgument as wrong:
        raise click.BadParameter(f"expected {wrong.expected}, got {shown(text)}") from None


def name(text: str) -> str:
    """A name: an empty one names nothing, and often comes of a variable that was not set."""
    if not text.strip():
        raise click.BadParameter(f"expected a name, got {shown(text)}")
    return text


def moment(text: str) -> datetime:
    """An ISO 8601 moment with its offset from UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(f"expected {_MOMENT}, got {shown(text)}") from None
    if found.utcoffset() is None:
        raise click.BadParameter(f"expected an offset at the end, as in {_MOMENT}, got {shown(text)}")
    return found.astimezone(UTC)


def app_argument(*, required: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The app of a command that starts it: first, or after -A."""

    def decorator(command: Callable[..., None]) -> Callable[..., None]:
        @click.argument("first", metavar="[APP]", required=False)
        @_app_option("The app: module:attr or file.py.")
        @wraps(command)
        def with_app(*args: object, first: str | None, app: str | None, **others: object) -> None:
            ctx = click.get_current_context()
            if first is not None and app != first and ctx.get_parameter_source("app") is _TYPED:
                raise click.UsageError(f"APP and -A: expected one app, got {shown(first)} and {shown(app)}")
            app = first or app
            if required and app is None:
                _refuse_no_app(ctx, f"{ctx.command_path} billing.py")
            command(*args, app=app, **others)

        return with_app

    return decorator


def app_option(
    *,
    required: bool = False,
    text: str = "Use this app's database: module:attr or file.py.",
    example: str = "",
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The app, after -A only: for commands that do not start it."""

    def decorator(command: Callable[..., None]) -> Callable[..., None]:
        if not required:
            return _app_option(text)(command)

        @_app_option("The app: module:attr or file.py.")
        @wraps(command)
        def with_app(*args: object, app: str | None, **others: object) -> None:
            if app is None:
                ctx = click.get_current_context()
                _refuse_no_app(ctx, f"{ctx.command_path} -A billing.py {example}".strip())
            command(*args, app=app, **others)

        return with_app

    return decorator


def _app_option(text: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("-A", "--app", envvar=APP_VARIABLE, metavar="APP", help=text)


def _refuse_no_app(ctx: click.Context, example: str) -> NoReturn:
    raise click.UsageError(
        f"Missing app: expected module:attr or a file, as in `{example}`; "
        f"{APP_VARIABLE}=billing.py names it for every command",
        ctx,
    )


def json_option(command: Callable[..., None]) -> Callable[..., None]:
    """Data for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def settings_options(command: Callable[..., None]) -> Callable[..., None]:
    """Where the app, the database and the settings are: the command is given one `access`."""

    @click.option("--database-url", metavar="URL", help="sqlite:///file.db or postgresql://user@host/name.")
    @click.option(
        "--config",
        "file",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Read settings from this file instead of mainspring.toml or pyproject.toml.",
    )
    @wraps(command)
    def with_access(
        *args: object, app: str | None, database_url: str | None, file: Path | None, **others: object
    ) -> None:
        command(*args, access=Access(app=app, database_url=database_url, file=file), **others)

    return with_access


def store_options(command: Callable[..., None]) -> Callable[..., None]:
    """Everything a command needs that asks the store or orders something of it."""
    return app_option()(settings_options(json_option(command)))


def positional(text: str | None) -> list[object]:
    """What `--args` says."""
    value = [] if text is None else read_json(text, "--args", expected=_ARRAY)
    if not isinstance(value, list):
        raise InvalidArgument("--args", text, _ARRAY)
    return value


def keywords(text: str | None) -> dict[str, object]:
    """What `--kwargs` says."""
    value = {} if text is None else read_json(text, "--kwargs", expected=_OBJECT)
    if not isinstance(value, dict):
        raise InvalidArgument("--kwargs", text, _OBJECT)
    return value


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Words of the form KEY=VALUE."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier() or name in found:
            refuse("argument", word, "KEY=VALUE, each key once")
        found[name] = text
    return found


def value(key: str, text: str, kind: TextKind) -> object:
    """A VALUE as the parameter takes it."""
    if kind is TextKind.TEXT or (kind is TextKind.TEXT_OR_NONE and text != "null"):
        return text  # a card number or a date would not come back from JSON as it was typed
    try:
        return read_json(text, key)
    except NotJSON:
        return text


def refuse(what: str, got: object, expected: str) -> NoReturn:
    """Wrong usage, in the words of every other refusal."""
    raise click.UsageError(f"{what}: expected {expected}, got {shown(got)}")


def author_option(command: Callable[..., None]) -> Callable[..., None]:
    """The command is given an `author`."""
    return click.option(
        "--by",
        "author",
        metavar="WHO",
        default=login_name,
        type=one_line,
        show_default="your login name",
        help="The name in the audit log.",
    )(command)


def one_line(text: str) -> str:
    """Text for the record; what would disturb a terminal is refused before it is stored."""
    if not text.strip() or not text.isprintable():
        raise click.BadParameter(f"expected one line of text, got {shown(text)}")
    return text.strip()


def log_options(command: Callable[..., None]) -> Callable[..., None]:
    """How much is said on stderr, and how."""
    command = click.option(
        "--log-format", type=click.Choice(["text", "json"]), help="Lines of text or of JSON."
    )(command)
    command = click.option(
        "--configure-logging/--no-configure-logging",
        "log_configure",
        default=None,
        help="Set up logging here, or leave it to the app.",
    )(command)
    return click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
        metavar="LEVEL",
        help="debug, info, warning or error.",
    )(command)
