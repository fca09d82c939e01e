"""Checks that the brokers share."""

from __future__ import annotations

import re

from mainspring.config import masked_url
from mainspring.errors import InvalidArgument

_TEXT = re.compile(r"[!-~]+")
_LONGEST = 255


def valid_text(text: object, field: str, what: str) -> str:
    """Visible ASCII, as the names of streams, subjects, topics and exchanges are."""
    if not isinstance(text, str) or not _TEXT.fullmatch(text) or len(text) > _LONGEST:
        raise InvalidArgument(field, text, f"{what}: up to {_LONGEST} visible ASCII characters")
    return text


def valid_url(url: object, field: str, schemes: tuple[str, ...]) -> str:
    """A URL of one of these kinds. Its password is in no message."""
    if not isinstance(url, str) or not _TEXT.fullmatch(url) or not url.startswith(schemes):
        shown = masked_url(url) if isinstance(url, str) else url
        raise InvalidArgument(field, shown, f"a URL that begins with {' or '.join(schemes)}")
    return url
