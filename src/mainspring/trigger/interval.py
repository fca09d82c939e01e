"""Slots at a fixed distance from each other, counted in real time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mainspring.duration import written
from mainspring.errors import InvalidArgument

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEAST, MOST = timedelta(seconds=1), timedelta(days=36525)


@dataclass(frozen=True, slots=True)
class Every:
    """Slots at anchor + n * period for every whole n, so they never drift.

    The anchor is kept as the first slot at or after 1970, so that two ways to write the same
    slots are equal.
    """

    period: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        if not isinstance(self.period, timedelta) or not LEAST <= self.period <= MOST:
            raise InvalidArgument("every", self.period, f"from {written(LEAST)} to {written(MOST)}")
        if not isinstance(self.anchor, datetime) or self.anchor.utcoffset() is None:
            raise InvalidArgument("anchor", self.anchor, "a datetime with a time zone")
        object.__setattr__(self, "anchor", EPOCH + (self.anchor - EPOCH) % self.period)

    def next_after(self, moment: datetime) -> datetime | None:
        periods = (moment - self.anchor) // self.period + 1
        try:
            return self.anchor + periods * self.period
        except OverflowError:
            return None

    def encode(self) -> str:
        facts: dict[str, object] = {"every": self.period.total_seconds()}
        if self.anchor != EPOCH:
            facts["anchor"] = self.anchor.isoformat()
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))
