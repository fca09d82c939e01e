"""A clock that stands still until it is told to move."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """Time that moves only when told to; the store is stamped with it, so its clock stands still too."""

    def __init__(self, start: datetime = START) -> None:
        if start.tzinfo is None:
            raise ValueError(f"start: expected an aware datetime, got {start!r}")
        self._start = self._now = start.astimezone(UTC)

    def now(self) -> datetime:
        """The moment it stands at."""
        return self._now

    def stamp(self) -> datetime | None:
        """The same moment: what is written into the store."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the start."""
        return (self._now - self._start).total_seconds()

    def advance(self, by: timedelta) -> None:
        """Move on. Going back is refused: use a clock with another start for that."""
        if by < timedelta():
            raise ValueError(f"by: expected a duration that is not negative, got {by!r}")
        self._now += by
