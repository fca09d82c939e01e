"""The trace that a job goes on with, as it is kept: a W3C traceparent, and after a space a tracestate."""

from __future__ import annotations

import re

LONGEST_STATE = 512
_PARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_STATE = re.compile(r"[\x21-\x7e][\x20-\x7e]*")


def written_trace(parent: str | None, state: str | None = None) -> str | None:
    """One text of both headers; None for a parent that is none. A state that is too long or not plain text
    is left out, as the standard allows."""
    if parent is None or not _PARENT.fullmatch(parent):
        return None
    if not state or len(state) > LONGEST_STATE or not _STATE.fullmatch(state):
        return parent
    return f"{parent} {state}"


def read_trace(trace: str) -> dict[str, str]:
    """The headers again, by their names."""
    parent, _, state = trace.partition(" ")
    return {"traceparent": parent, "tracestate": state} if state else {"traceparent": parent}


def trace_id(trace: str | None) -> str | None:
    """The 32 hex digits that all spans of the trace share."""
    return None if trace is None else trace[3:35]
