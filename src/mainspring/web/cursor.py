"""Where a page ends, as callers carry it: text that means nothing to them, checked when it comes back."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from hashlib import blake2b

import msgspec

from mainspring.errors import InvalidArgument
from mainspring.web.problems import Problem

_CHECK = 6
_EXPECTED = "what `next` of the page before said, with the same filters"
_LONGEST = 600


def cursor(position: int | str, *question: object) -> str:
    """A place in the answer to a question: its route and its filters."""
    said = msgspec.json.encode(position)
    return urlsafe_b64encode(_check(said, question) + said).rstrip(b"=").decode()


def position(text: str | None, *question: object) -> int | str | None:
    """The place a cursor of the same question names. It grants nothing, so a checksum is enough: it tells
    a cursor from what somebody made up, changed, or took from another question."""
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


def _check(said: bytes, question: tuple[object, ...]) -> bytes:
    asked = repr(question).encode()
    return blake2b(asked + b"\0" + said, digest_size=_CHECK, person=b"cursor").digest()
