"""Definitions as they are kept."""

from __future__ import annotations

import hashlib

import msgspec

from mainspring.errors import Unreadable
from mainspring.model.workflow import Definition

_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Definition).decode


def written(definition: Definition) -> tuple[bytes, str]:
    """The digest by which it is known, and its text."""
    text = _encode(definition)
    return hashlib.sha256(text).digest(), text.decode()


def read(text: str) -> Definition:
    """One that was kept."""
    try:
        return _decode(text)
    except msgspec.MsgspecError as error:
        raise Unreadable("definition of a workflow", str(error)) from error
