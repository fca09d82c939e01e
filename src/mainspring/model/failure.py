"""One reported failure of a job."""

from __future__ import annotations

from datetime import datetime

from mainspring.model.value import Value


class Failure(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What a handler raised. `attempt` and `at` are set by the store when it is written."""

    type: str
    message: str
    traceback: str = ""
    attempt: int = 0
    at: datetime | None = None
