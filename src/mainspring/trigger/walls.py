"""From wall times to instants, on the nights when the clocks change.

The search for the next matching wall time never sees a zone; this module alone decides which
instants a wall time means. The answer depends on `moment` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

WallAfter = Callable[[datetime], datetime]
_SECOND = timedelta(seconds=1)


class Gap(StrEnum):
    """What becomes of a wall time that the clocks jump over."""

    SHIFT = "shift"
    """It fires at the first instant after the gap, together with all others of that gap."""
    SKIP = "skip"


class Fold(StrEnum):
    """Which of two equal wall times fires, when the clocks go back."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Walls:
    """The wall clock of one zone, read by one pair of rules.

    SKIP and BOTH together name every instant that shows a matching wall time, and no other.
    """

    __slots__ = ("_fold", "_gap", "_zone")

    def __init__(self, zone: ZoneInfo, gap: Gap, fold: Fold) -> None:
        self._zone, self._gap, self._fold = zone, gap, fold

    def after(self, moment: datetime, wall_after: WallAfter) -> datetime:
        """The first slot after `moment`, where `wall_after` finds the next matching wall time."""
        while True:
            wall = self._wall_ahead(moment, wall_after)
            first, second = self._instants(wall)
            while first > second:  # skipped: the reading before the change is the later one (PEP 495)
                gap_end = self._change(second, first)
                if self._gap is Gap.SHIFT:
                    return gap_end
                wall = wall_after(self._wall(gap_end) - _SECOND)
                first, second = self._instants(wall)
            slot = first if first > moment else second
            if first == second or self._fold in (Fold.BOTH, Fold.FIRST if slot is first else Fold.SECOND):
                return slot
            # Not this pass through the repeated time: go on from its last second.
            turn = self._change(first, second)
            moment = (turn if slot is first else turn + (second - first)) - _SECOND

    def shifted(self, slot: datetime, wall_after: WallAfter) -> bool:
        """Whether a wall time that was skipped has come to lie on this slot."""
        before, here = self._wall(slot - _SECOND), self._wall(slot)
        return self._gap is Gap.SHIFT and here - before > _SECOND and wall_after(before) < here

    def _wall_ahead(self, moment: datetime, wall_after: WallAfter) -> datetime:
        """The matching wall time that comes next, which is an earlier one if the clock goes back first."""
        wall = wall_after(self._wall(moment))
        if (turn := self._turn_ahead(moment)) is not None and self._instants(wall)[0] >= turn:
            return wall_after(self._wall(turn) - _SECOND)
        return wall

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None, fold=0)

    def _instants(self, wall: datetime) -> tuple[datetime, datetime]:
        aware = wall.replace(tzinfo=self._zone, fold=0)
        return aware.astimezone(UTC), aware.replace(fold=1).astimezone(UTC)

    def _turn_ahead(self, moment: datetime) -> datetime | None:
        """When the clock goes back, if `moment` is in the first pass through what will repeat."""
        local = moment.astimezone(self._zone)
        again = local.replace(fold=1).astimezone(UTC)
        if local.fold == 1 or again <= moment:
            return None
        return self._change(moment.astimezone(UTC), again)

    def _change(self, before: datetime, after: datetime) -> datetime:
        """The one instant in (before, after] where the offset changes, to the second."""
        old = before.astimezone(self._zone).utcoffset()
        before = before.replace(microsecond=0)
        low, high = 0, -((before - after) // _SECOND)
        while high - low > 1:
            middle = (low + high) // 2
            if (before + middle * _SECOND).astimezone(self._zone).utcoffset() == old:
                low = middle
            else:
                high = middle
        return before + high * _SECOND
