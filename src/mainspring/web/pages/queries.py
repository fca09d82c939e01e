"""What stands behind the ? of an address, as pages read it and write it again."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import Path
from pydantic import BeforeValidator

from mainspring.errors import InvalidArgument

T = TypeVar("T", bound=StrEnum)
LARGEST_ID = 2**63 - 1


def _or_none(value: object) -> object:
    """A field of a form that was left empty was not filled in."""
    return None if isinstance(value, str) and not value.strip() else value


Text = Annotated[str | None, BeforeValidator(_or_none)]
Whole = Annotated[int | None, BeforeValidator(_or_none)]
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
    """The path with those fields that have a value."""
    given = {name: str(value) for name, value in fields.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
