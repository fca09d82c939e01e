"""From wall times to instants, on the nights when the clocks change.

The search for the next matching wall time never sees a zone; this module alone decides which
instant a wall time means. Both answers below depend on `moment` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

WallAfter = Callable[[datetime], datetime]
_SECOND = timedelta(seconds=1)


class Walls:
    """The wall clock of one zone."""

    __slots__ = ("_zone",)

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone

    def once_after(self, moment: datetime, wall_after: WallAfter) -> datetime:
        """Every matching wall time once: the first time it comes, or right after the gap that skips it."""
        wall = self._wall(moment)
        while True:
            wall = wall_after(wall)
            instant = self._instant(wall, 0)
            if self._is_skipped(wall):
                instant = self._change(self._instant(wall, 1), instant)
            # In the second pass through a repeated hour the first pass lies behind us.
            if instant > moment:
                return instant

    def real_after(self, moment: datetime, wall_after: WallAfter) -> datetime:
        """Every instant that shows a matching wall time: skipped ones never, repeated ones twice."""
        wall = wall_after(self._wall(moment))
        if (turn := self._turn_ahead(moment)) is not None and self._instant(wall, 0) >= turn:
            wall = wall_after(self._wall(turn) - _SECOND)
        while self._is_skipped(wall):
            gap_end = self._change(self._instant(wall, 1), self._instant(wall, 0))
            wall = wall_after(self._wall(gap_end) - _SECOND)
        first = self._instant(wall, 0)
        return first if first > moment else self._instant(wall, 1)

    def _wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self._zone).replace(tzinfo=None, fold=0)

    def _instant(self, wall: datetime, fold: int) -> datetime:
        return wall.replace(tzinfo=self._zone, fold=fold).astimezone(UTC)

    def _is_skipped(self, wall: datetime) -> bool:
        # In a gap the reading before the change is the later instant (PEP 495).
        return self._instant(wall, 0) > self._instant(wall, 1)

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
