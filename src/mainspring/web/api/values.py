"""Values as they come in by HTTP: ids, names, moments, lengths of time, cursors, versions, request keys."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from datetime import datetime, timedelta
from hashlib import blake2b, sha256
from typing import Annotated

import msgspec
from fastapi import Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.requests import Request

from mainspring.duration import duration
from mainspring.errors import InvalidArgument
from mainspring.model.job import RequestKey
from mainspring.triggers.zones import read_instant
from mainspring.web.auth.identity import actor_of
from mainspring.web.problems import Problem

LARGEST_ID = 2**63 - 1
LARGEST_PAGE = 500
_NAME = r"^[A-Za-z0-9_.:/~-]{1,200}$"
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
_CHECK = 6
_EXPECTED = "what `next` of the page before said, with the same filters"
_LONGEST = 600
IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", max_length=100, description="The ETag that was read: refused with 412 if changed."
    ),
]
_VERSION = re.compile(r'"(\d{1,9})"', re.ASCII)


class Body(BaseModel):
    """A body that says no more than it may, in the types it may."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Params(BaseModel):
    """Query parameters. The route itself refuses those it has not."""


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


def cursor(position: int | str, *question: object) -> str:
    """A place in the answer to a question: its route and its filters."""
    said = msgspec.json.encode(position)
    return urlsafe_b64encode(_check(said, question) + said).rstrip(b"=").decode()


def position(text: str | None, *question: object) -> int | str | None:
    """The place a cursor of the same question names. It grants nothing, so a checksum is enough: a
    cursor that was made up, changed, or taken from another question is refused."""
    if text is None:
        return None
    try:
        made = urlsafe_b64decode(text[:_LONGEST].encode() + b"=" * (-len(text) % 4))
        check, said = made[:_CHECK], made[_CHECK:]
        if check == _check(said, question):
            return msgspec.json.decode(said, type=int | str)
    except (NotBase64, ValueError, msgspec.MsgspecError):
        pass
    wrong = InvalidArgument("cursor", text, _EXPECTED)
    raise Problem(422, "cursor", str(wrong), field="cursor", expected=_EXPECTED)


def etag(version: int) -> str:
    """Of a version."""
    return f'"{version}"'


def expected_version(said: str | None) -> int | None:
    """The version that was read; None where any will do."""
    if said is None or said.strip() == "*":
        return None
    found = _VERSION.fullmatch(said.strip())
    if found is None:
        raise Problem(
            412, "precondition", "if-match: no version that ever was; read it again", field="if-match"
        )
    return int(found[1])


async def request_key(request: Request, key: str | None) -> RequestKey | None:
    """The key with what it stands for: method, path and body, byte for byte."""
    if key is None:
        return None
    if not key.isascii() or not key.isprintable():
        raise InvalidArgument("idempotency-key", key, "1 to 200 printable ASCII characters")
    asked = f"{request.method} {request.scope['path']}\n".encode() + await request.body()
    return RequestKey(caller=actor_of(request).name, key=key, digest=sha256(asked).digest())


def _check(said: bytes, question: tuple[object, ...]) -> bytes:
    asked = repr(question).encode()
    return blake2b(asked + b"\0" + said, digest_size=_CHECK, person=b"cursor").digest()
