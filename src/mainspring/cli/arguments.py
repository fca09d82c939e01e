"""Arguments of a call as they are typed: JSON, or KEY=VALUE."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import click

from mainspring.errors import InvalidArgument, shown
from mainspring.tasks.payload import NotJSON, read_json
from mainspring.tasks.signature import TextKind

_ARRAY, _OBJECT = "a JSON array", "a JSON object"


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
