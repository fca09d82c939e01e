"""How much of what others sent is kept in a job's result."""

from __future__ import annotations

import re

from mainspring.errors import InvalidArgument

MOST = 8192
"""Bytes of one text. Escaped as JSON, two of them and the rest still fit into a result."""
# NUL is refused by stores; the other control characters would take six bytes each.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def valid_keep(keep: int, field: str) -> int:
    """How many bytes are kept."""
    if type(keep) is not int or not 0 <= keep <= MOST:
        raise InvalidArgument(field, keep, f"a whole number of bytes from 0 to {MOST}")
    return keep


def as_text(data: bytes) -> str:
    """Text that any store can keep, whatever the bytes were."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", data.decode("utf-8", "replace"))
