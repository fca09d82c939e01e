"""One reported failure of a job."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.model.value import Value


class Failure(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What a handler raised. `attempt` and `at` are set by the store when it is written."""

    type: str
    message: str
    traceback: str = ""
    attempt: int = 0
    at: datetime | None = None


def tried_since(errors: Sequence[Failure]) -> datetime | None:
    """When the first of these attempts failed, counted from the last replay; None where none did."""
    first = None
    for error in reversed(errors):
        if first is not None and error.attempt > first.attempt:
            break  # attempts count from one again: those before it ended with another death
        first = error
    return None if first is None else first.at
