"""What pages are sent: texts of a form, moments among them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from starlette.requests import Request

from mainspring.errors import InvalidArgument
from mainspring.triggers.zones import read_instant

LARGEST_FIELDS = 100


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
