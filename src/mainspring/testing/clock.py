"""A clock that stands still until a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mainspring.duration import Duration, duration

START = datetime(2030, 1, 1, tzinfo=UTC)


class ManualClock:
    """Time that moves only when a test moves it; the store's time is the same."""

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

    def advance(self, by: Duration) -> None:
        """Move on, by a timedelta or what reads as one: "90s", "1h30m". Going back is refused: use a
        clock with another start for that."""
        length = by if isinstance(by, timedelta) else duration(by, "by")
        if length < timedelta():
            raise ValueError(f"by: expected a duration that is not negative, got {by!r}")
        self._now += length

    def move_to(self, moment: datetime) -> None:
        """Move on to this moment, which must not be past."""
        if moment.tzinfo is None:
            raise ValueError(f"moment: expected an aware datetime, got {moment!r}")
        if moment < self._now:
            raise ValueError(f"moment: expected one that is not before {self._now}, got {moment}")
        self._now = moment.astimezone(UTC)
