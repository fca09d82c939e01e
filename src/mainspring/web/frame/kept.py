"""What runs in the background of this process for somebody's page; what has ended is kept for a while."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from mainspring.errors import NotFound

MOST_KEPT = 20


class Stage(StrEnum):
    """Where it stands."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Underway(Protocol):
    """Something that runs, or has run."""

    id: int
    stage: Stage


T = TypeVar("T", bound=Underway)


class Kept(Generic[T]):
    """Those of this process, by their numbers."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._all: dict[int, T] = {}
        self._last = 0

    def number(self) -> int:
        """For the next one."""
        self._last += 1
        return self._last

    def keep(self, one: T) -> T:
        """One more; the oldest that have ended are forgotten."""
        self._all[one.id] = one
        ended = [each.id for each in self._all.values() if each.stage is not Stage.RUNNING]
        for old in ended[: max(0, len(self._all) - MOST_KEPT)]:
            del self._all[old]
        return one

    def one(self, number: int) -> T:
        """One of them, or NotFound."""
        if number not in self._all:
            raise NotFound(self._kind, number)
        return self._all[number]

    def all(self) -> Iterable[T]:
        """Oldest first."""
        return self._all.values()
