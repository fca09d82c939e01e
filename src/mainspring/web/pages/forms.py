"""What pages are sent, in a form or behind the ? of an address: texts, numbers, moments; and how addresses
are written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, TypeVar
from urllib.parse import urlencode

from fastapi import Path
from pydantic import BeforeValidator
from starlette.requests import Request

from mainspring.errors import InvalidArgument
from mainspring.triggers.zones import read_instant
from mainspring.web.privacy import Plain

T = TypeVar("T", bound=StrEnum)
LARGEST_ID = 2**63 - 1
JobId = Annotated[int, Path(ge=1, le=LARGEST_ID)]
LARGEST_FIELDS = 100


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


async def form_of(request: Request) -> dict[str, str]:
    """The texts of a form; the last one counts where a name comes twice. Files are refused."""
    form = await request.form(max_files=0, max_fields=LARGEST_FIELDS)
    return {name: value for name, value in form.items() if isinstance(value, str)}


def asked(request: Request) -> dict[str, str]:
    """The same of a query."""
    return dict(request.query_params)


def text(form: Mapping[str, str], name: str) -> str | None:
    """A line of text, None when it is empty."""
    value = form.get(name, "").strip()
    if not value.isprintable():
        raise InvalidArgument(name, value, "one line of text")
    return value or None


def when(form: Mapping[str, str], name: str) -> datetime | None:
    """A moment; one without an offset, as a browser's field has it, is in UTC."""
    value = form.get(name, "").strip()
    if not value:
        return None
    if "Z" not in value and "+" not in value and value.count("-") < 3:
        value = f"{value}:00Z" if value.count(":") == 1 else f"{value}Z"
    return read_instant(value, name)


def whole(form: Mapping[str, str], name: str, *, least: int, most: int) -> int | None:
    """A whole number, None when it is empty."""
    value = form.get(name, "").strip()
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 19 and least <= int(value) <= most):
        raise InvalidArgument(name, value, f"a whole number from {least} to {most}")
    return int(value)
