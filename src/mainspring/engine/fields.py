"""Which run a log line belongs to: known to every logger that is called inside it, by the line's context."""

from __future__ import annotations

import logging
from contextvars import ContextVar
from datetime import datetime

from mainspring.model.job import Claim, trace_id

running: ContextVar[Claim | None] = ContextVar("mainspring_claim", default=None)
"""The claim whose handler this context runs."""
NAMES = (
    "job_id",
    "task",
    "queue",
    "attempt",
    "status",
    "duration",
    "error",
    "schedule_id",
    "slot",
    "workflow_id",
    "trace_id",
)
"""What a record of a run may carry, in the order in which it is written."""


class RunFields(logging.Filter):
    """Puts the run's facts on every record that is made inside it. It lets everything pass, and belongs on a
    handler: `{"filters": {"run": {"()": "mainspring.engine.fields.RunFields"}}}` in your own dictConfig."""

    def filter(self, record: logging.LogRecord) -> bool:
        claim = running.get()
        if claim is not None:
            for name, value in facts(claim).items():
                if not hasattr(record, name):
                    setattr(record, name, value)
        return True


def facts(claim: Claim) -> dict[str, object]:
    """What is known of a run from its claim."""
    return {
        "job_id": claim.job_id,
        "task": claim.task,
        "queue": claim.queue,
        "attempt": claim.attempt,
        **origin(claim.schedule_id, claim.slot_at, claim.trace),
        **({} if claim.workflow_id is None else {"workflow_id": claim.workflow_id}),
    }


def origin(schedule_id: int | None, slot_at: datetime | None, trace: str | None) -> dict[str, object]:
    """Where a run comes from, as far as it has such a thing."""
    found: dict[str, object] = {}
    if schedule_id is not None and slot_at is not None:
        found = {"schedule_id": schedule_id, "slot": slot_at.isoformat()}
    if trace is not None:
        found["trace_id"] = trace_id(trace)
    return found
