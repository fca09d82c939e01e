"""Options of a task, each checked where it is given."""

from __future__ import annotations

from mainspring.errors import InvalidArgument
from mainspring.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY

MOST_ATTEMPTS = 1000


def valid_attempts(attempts: int, field: str) -> int:
    """How many times a job may be tried in all."""
    if not _is_whole(attempts) or not 1 <= attempts <= MOST_ATTEMPTS:
        raise InvalidArgument(field, attempts, f"a whole number from 1 to {MOST_ATTEMPTS}")
    return attempts


def valid_priority(priority: int, field: str = "priority") -> int:
    """Higher runs first."""
    if not _is_whole(priority) or not LOWEST_PRIORITY <= priority <= HIGHEST_PRIORITY:
        raise InvalidArgument(
            field, priority, f"a whole number from {LOWEST_PRIORITY} to {HIGHEST_PRIORITY}; higher runs first"
        )
    return priority


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
