"""When a job dies without its handler having failed, and what is put on record as its last error."""

from __future__ import annotations

from mainspring.model.failure import Failure

CRASHES_ALLOWED = 3
"""A job that took this many processes with it is a dead letter; nobody runs it again unasked."""

LAST_CRASH = CRASHES_ALLOWED - 1
"""The crashes of a job whose next one is its last: it runs where no other suspect does, so that only its own
doing can bury it."""

WORKER_LOST = Failure(
    type="WorkerLost",
    message=f"its worker died or lost its lease under it, once too often ({CRASHES_ALLOWED} crashes)",
)
NEVER_BEGAN = Failure(type="Expired", message="its deadline passed while it waited")


def is_too_many(crashes: int) -> bool:
    """Whether a job that has now crashed this often is quarantined."""
    return crashes >= CRASHES_ALLOWED
