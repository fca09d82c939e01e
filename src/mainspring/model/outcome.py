"""How one run of a handler ended, before any rule has been applied to it."""

from __future__ import annotations

from mainspring.model.failure import Failure
from mainspring.model.value import Value


class Succeeded(Value, frozen=True, kw_only=True):
    """The handler returned; `result` is its JSON, or None for nothing."""

    result: bytes | None = None


class Settled(Value, frozen=True, kw_only=True):
    """The handler succeeded, and its own transaction has written so: nothing is left to write."""

    result: bytes | None = None


class Failed(Value, frozen=True, kw_only=True):
    """The handler raised, timed out, or returned what cannot be kept."""

    failure: Failure


class Stopped(Value, frozen=True, kw_only=True):
    """We ended the run ourselves, at shutdown: it costs no attempt. `started` is false for a
    claim whose handler never began."""

    started: bool = True


Outcome = Succeeded | Settled | Failed | Stopped
