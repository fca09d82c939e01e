"""Arguments of a call, typed as JSON."""

from __future__ import annotations

import json
from typing import NoReturn

import click

from mainspring.errors import shown


def positional(text: str | None) -> list[object]:
    """What `--args` says."""
    value = [] if text is None else _json("--args", text, "a JSON array")
    if not isinstance(value, list):
        refuse("--args", text, "a JSON array")
    return value


def keywords(text: str | None) -> dict[str, object]:
    """What `--kwargs` says."""
    value = {} if text is None else _json("--kwargs", text, "a JSON object")
    if not isinstance(value, dict):
        refuse("--kwargs", text, "a JSON object")
    return value


def _json(option: str, text: str, expected: str) -> object:
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        refuse(option, text, expected)


def read_json(text: str) -> object:
    """Strict: Python would take NaN and Infinity, which are not JSON and may well be names."""
    return json.loads(text, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def refuse(what: str, got: object, expected: str) -> NoReturn:
    """Wrong usage, in the words of every other refusal."""
    raise click.UsageError(f"{what}: expected {expected}, got {shown(got)}")
