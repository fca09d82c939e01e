"""Arguments of a call, typed as JSON."""

from __future__ import annotations

from typing import NoReturn

import click

from mainspring.declare.jsontext import read_json
from mainspring.errors import InvalidArgument, shown

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


def refuse(what: str, got: object, expected: str) -> NoReturn:
    """Wrong usage, in the words of every other refusal."""
    raise click.UsageError(f"{what}: expected {expected}, got {shown(got)}")
