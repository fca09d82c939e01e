"""Arguments of a job as they are typed: JSON, or KEY=VALUE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NoReturn

import click

from mainspring.declare.signature import TextKind
from mainspring.errors import shown


def positional(text: str | None) -> list[object]:
    """Positional arguments, as `--args` gives them."""
    listed = [] if text is None else _json("--args", text, "a JSON array")
    if not isinstance(listed, list):
        _refuse("--args", text, "a JSON array")
    return listed


def keywords(text: str | None) -> dict[str, object]:
    """Keyword arguments, as `--kwargs` gives them."""
    named = {} if text is None else _json("--kwargs", text, "a JSON object")
    if not isinstance(named, dict):
        _refuse("--kwargs", text, "a JSON object")
    return named


def _json(option: str, text: str, expected: str) -> object:
    try:
        return _read(text)
    except (ValueError, RecursionError):
        _refuse(option, text, expected)


def pairs(words: Sequence[str]) -> dict[str, str]:
    """Words of the form KEY=VALUE."""
    found: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier() or name in found:
            _refuse("argument", word, "KEY=VALUE, each key once")
        found[name] = text
    return found


def value(text: str, kind: TextKind) -> object:
    """A VALUE as the parameter takes it."""
    if kind is TextKind.TEXT or (kind is TextKind.TEXT_OR_NONE and text != "null"):
        return text  # a card number or a date would not come back from JSON as it was typed
    try:
        return _read(text)
    except (ValueError, RecursionError):
        return text


def _read(text: str) -> object:
    # Python would take NaN and Infinity, which are not JSON and may well be names.
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _refuse(what: str, got: object, expected: str) -> NoReturn:
    raise click.UsageError(f"{what}: expected {expected}, got {shown(got)}")
