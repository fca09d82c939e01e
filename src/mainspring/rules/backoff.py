"""How long a failed job waits before its next attempt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

LONGEST_RETRY_AFTER = timedelta(days=1)
"""The longest wait that a server may ask for."""


class Pacing(Protocol):
    """The part of a retry policy that sets the pace."""

    @property
    def base(self) -> timedelta: ...
    @property
    def factor(self) -> float: ...
    @property
    def cap(self) -> timedelta: ...
    @property
    def jitter(self) -> bool: ...
    @property
    def shape(self) -> str | Sequence[timedelta]: ...


def delay(retry: Pacing, failures: int, fraction: float, *, at_least: timedelta | None = None) -> timedelta:
    """The policy's wait after so many failures, at most cap; `fraction` in [0, 1) is the random part.

    With jitter one half of it is certain and the other half is multiplied by `fraction`, so that
    jobs which failed together do not come back together, and none comes back at once. `at_least` is
    what the failure itself asked for: no less, and not beyond a day.
    """
    whole = min(_whole(retry, failures), retry.cap)
    wait = whole / 2 + whole / 2 * fraction if retry.jitter else whole
    return wait if at_least is None else max(wait, min(at_least, LONGEST_RETRY_AFTER))


def _whole(retry: Pacing, failures: int) -> timedelta:
    try:
        match retry.shape:
            case "exponential":
                return retry.base * retry.factor ** (failures - 1)
            case "linear":
                return retry.base * failures
            case "fixed":
                return retry.base
            case delays:
                return timedelta() + delays[min(failures, len(delays)) - 1]  # type: ignore[operator]
    except OverflowError:
        return retry.cap
