"""Requests that may come twice: a key of the caller's own, and what was answered to it."""

from __future__ import annotations

from mainspring.model.unique import Inserted
from mainspring.model.value import Value


class RequestKey(Value, frozen=True, kw_only=True):
    """What a caller calls one request. Two callers may use the same key."""

    caller: str
    key: str
    digest: bytes
    """SHA-256 of what is asked for: the same key for something else is a mistake."""


class Answered(Value, frozen=True, kw_only=True):
    """What became of the jobs of a request."""

    jobs: tuple[Inserted, ...]
    again: bool = False
    """It had been answered before; nothing was written."""
