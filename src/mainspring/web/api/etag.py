"""`ETag` and `If-Match`: an edit of what somebody has read is refused if it is not that any more."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Header

from mainspring.web.problems import Problem

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match", max_length=100, description="The ETag that was read: refused with 412 if changed."
    ),
]
_VERSION = re.compile(r'"(\d{1,9})"', re.ASCII)


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
