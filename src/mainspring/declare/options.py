"""Options of a task, each checked where it is given."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from mainspring.duration import Duration, duration, written
from mainspring.errors import InvalidArgument
from mainspring.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY

MOST_ATTEMPTS = 1000
_STEEPEST = 100.0


@dataclass(frozen=True, slots=True, init=False)
class Retry:
    """How often a task is tried, and how long it waits in between.

    After the n-th failure the job waits base * factor ** (n - 1), at most cap. With jitter, half of
    that is certain and half is random.
    """

    attempts: int
    base: timedelta
    factor: float
    cap: timedelta
    jitter: bool

    def __init__(
        self,
        attempts: int = 3,
        base: Duration = "1s",
        factor: float = 2.0,
        cap: Duration = "1h",
        jitter: bool = True,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "attempts", valid_attempts(attempts, "retry.attempts"))
        set_field(self, "base", duration(base, "retry.base"))
        set_field(self, "factor", _valid_factor(factor))
        set_field(self, "cap", duration(cap, "retry.cap"))
        set_field(self, "jitter", jitter)
        if self.cap < self.base:
            raise InvalidArgument("retry.cap", cap, f"at least retry.base ({written(self.base)})")


def valid_retry(retry: Retry | None) -> Retry:
    """The policy given, or the default one."""
    if retry is None:
        return Retry()
    if not isinstance(retry, Retry):
        raise InvalidArgument("task.retry", retry, "a Retry; pass Retry(attempts=3) to try three times")
    return retry


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


def _valid_factor(factor: float) -> float:
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor <= _STEEPEST:
        raise InvalidArgument("retry.factor", factor, f"a number from 1 to {_STEEPEST:g}")
    return float(factor)


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
