"""Headers of HTTP targets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mainspring.errors import InvalidArgument

MOST, LARGEST = 50, 8192
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?", re.ASCII)
# How a message is framed, where it goes, and what says which job it is: those are ours.
_OURS = frozenset(
    (
        "connection", "content-length", "expect", "host", "idempotency-key", "keep-alive", "te", "trailer",
        "transfer-encoding", "upgrade", "webhook-id", "webhook-signature", "webhook-timestamp",
    )
)  # fmt: skip


def valid_headers(given: object, field: str) -> tuple[tuple[str, str], ...]:
    """Pairs of name and value, or InvalidArgument."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidArgument(field, given, "a mapping of names to text")
    if len(given) > MOST:
        raise InvalidArgument(field, f"{len(given)} headers", f"at most {MOST}")
    seen: set[str] = set()
    for name, value in given.items():
        _check(name, value, field)
        if name.lower() in seen:
            raise InvalidArgument(field, name, "each name once, in whatever case")
        seen.add(name.lower())
    size = sum(len(name) + len(value) + 4 for name, value in given.items())
    if size > LARGEST:
        raise InvalidArgument(field, f"{size} bytes", f"at most {LARGEST} bytes in all")
    return tuple(given.items())


def _check(name: object, value: object, field: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgument(field, name, "names of letters, digits and !#$%&'*+-.^_`|~")
    if name.lower() in _OURS or name.lower().startswith("proxy-"):
        raise InvalidArgument(
            field, name, "no header that frames, routes or identifies the call: those are set for you"
        )
    if not isinstance(value, str) or not _VALUE.fullmatch(value):
        # The value stays out of the message: it may be a secret.
        got = type(value) if not isinstance(value, str) else f"{len(value)} characters"
        raise InvalidArgument(f"{field}[{name}]", got, "visible ASCII, spaces and tabs inside, as text")
