"""How long a failed job waits before its next attempt."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol


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


def delay(retry: Pacing, failures: int, fraction: float) -> timedelta:
    """base * factor ** (failures - 1), at most cap; `fraction` in [0, 1) is the throw of the dice.

    With jitter one half of it is certain and the other half is multiplied by `fraction`, so that
    jobs which failed together do not come back together, and none comes back at once.
    """
    try:
        whole = min(retry.base * retry.factor ** (failures - 1), retry.cap)
    except OverflowError:
        whole = retry.cap
    return whole / 2 + whole / 2 * fraction if retry.jitter else whole
