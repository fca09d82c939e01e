"""The wall clock of one zone, as recurrence rules and business days read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
_NONE = timedelta()


@dataclass(frozen=True, slots=True)
class LocalClock:
    """From instants to naive wall times and back."""

    zone: ZoneInfo

    def wall(self, moment: datetime) -> datetime:
        return moment.astimezone(self.zone).replace(tzinfo=None, fold=0)

    def offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or _NONE

    def reading(self, wall: datetime, fold: int = 0) -> datetime:
        """RFC 5545's reading: with the offset before the gap if skipped, the first time if repeated."""
        return wall.replace(tzinfo=self.zone, fold=fold).astimezone(UTC)

    def settled(self, wall: datetime) -> datetime:
        """Like `reading`, but a skipped time is the first instant after its gap, which keeps the order."""
        instant = self.reading(wall)
        if self.gap_around(wall):
            return self.change(self.reading(wall, fold=1), instant)
        return instant

    def gap_around(self, wall: datetime) -> timedelta:
        """How much is left out where this wall time would be; nothing if it exists."""
        # In a gap the reading before the change is the later instant (PEP 495).
        return max(self.reading(wall) - self.reading(wall, fold=1), _NONE)

    def jump_before(self, moment: datetime) -> timedelta:
        """How far the clocks were put forward in the day before this instant. None ever jumped further."""
        return max(self.offset(moment) - self.offset(moment - _DAY), _NONE)

    def change(self, before: datetime, after: datetime) -> datetime:
        """The one instant in (before, after] from which the offset is another, to the second."""
        old = self.offset(before)
        low, high = 0, -((before - after) // _SECOND)
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(before + middle * _SECOND) == old:
                low = middle
            else:
                high = middle
        return before + high * _SECOND
