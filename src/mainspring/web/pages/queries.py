"""What stands behind the ? of an address, as pages read it and write it again."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import Path
from pydantic import BeforeValidator

from mainspring.errors import InvalidArgument
from mainspring.web.privacy import Plain

T = TypeVar("T", bound=StrEnum)
LARGEST_ID = 2**63 - 1


def or_none(value: object) -> object:
    """A field of a form that was left empty was not filled in."""
    return None if isinstance(value, str) and not value.strip() else value


def in_digits(value: object) -> object:
    """Of a form: `int()` would take 1_000, +5 and the digits of every script."""
    if isinstance(value, str) and not (value.isascii() and value.isdigit() and len(value) < 20):
        raise ValueError("a whole number in the digits 0 to 9")
    return value


Text = Annotated[str | None, BeforeValidator(or_none)]
Sent = Annotated[int, BeforeValidator(in_digits)]
Whole = Annotated[int | None, BeforeValidator(or_none)]
JobId = Annotated[int, Path(ge=1, le=LARGEST_ID)]


def one_of(kind: type[T], value: str | None, field: str) -> T | None:
    """The member of an enumeration that a field names, or InvalidArgument."""
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        raise InvalidArgument(field, value, f"one of {', '.join(each.value for each in kind)}") from None


def address(path: str, **fields: object) -> str:
    """The path with those fields that have a value: ids, and what the same request said of itself. What is
    stored does not go into an address, which ends up in logs and histories."""
    given = {name: str(value) for name, value in fields.items() if value is not None}
    return Plain(f"{path}?{urlencode(given)}" if given else path)
