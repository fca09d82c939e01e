"""Values as they come in by HTTP: ids, names, moments, lengths of time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from mainspring.duration import duration
from mainspring.triggers.zones import read_instant

LARGEST_ID = 2**63 - 1
LARGEST_PAGE = 500
_NAME = r"^[A-Za-z0-9_.:/~-]{1,200}$"


class Body(BaseModel):
    """A body that says no more than it may, in the types it may."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Params(BaseModel):
    """Query parameters. The route itself refuses those it has not."""


Id = Annotated[int, Path(ge=1, le=LARGEST_ID)]
AnId = Annotated[int, Field(ge=1, le=LARGEST_ID)]
InPath = Annotated[str, Path(pattern=_NAME, description="A name; write ~ for each / in it.")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*$")]
"""Text for the record."""
Text = Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")]
Moment = Annotated[
    str,
    Field(max_length=40, json_schema_extra={"format": "date-time"}, description="ISO 8601 with an offset."),
]
Length = Annotated[str | int | float, Field(description='"90s", "10m", "1h30m", or a number of seconds.')]
LengthText = Annotated[
    str, Field(max_length=40, description='"90s", "10m", "1h30m", or a number of seconds.')
]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
Cursor = Annotated[str | None, Query(max_length=600, description="`next` of the page before.")]


def name_of(text: str) -> str:
    """A name out of a path, in which ~ stands for /."""
    return text.replace("~", "/")


def at(text: str | None, field: str) -> datetime | None:
    """A moment that may be absent."""
    return None if text is None else read_instant(text, field)


def length(text: str | int | float | None, field: str) -> timedelta | None:
    """A length of time that may be absent; in a URL a bare number is text and counts seconds."""
    if text is None:
        return None
    if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 12:
        return duration(int(text), field)
    return duration(text, field)
