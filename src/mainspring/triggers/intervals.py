"""Triggers without a wall clock: a fixed period, and a list of instants."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST, LONGEST = timedelta(seconds=1), timedelta(days=36525)
MOST_INSTANTS = 1000


@dataclass(frozen=True, slots=True)
class Every:
    """Slots at anchor + n * period for every whole n, so they never drift.

    The anchor is kept as the first slot at or after 1970, so that two ways to write the same
    slots are equal.
    """

    period: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        if not isinstance(self.period, timedelta) or not SHORTEST <= self.period <= LONGEST:
            raise InvalidArgument(
                "every", self.period, f"from {format_duration(SHORTEST)} to {format_duration(LONGEST)}"
            )
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


@dataclass(frozen=True, slots=True)
class Instants:
    """Slots at these instants and no others, kept in order and each once."""

    moments: tuple[datetime, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "moments", _checked(self.moments))

    def next_after(self, moment: datetime) -> datetime | None:
        place = bisect_right(self.moments, moment)
        return self.moments[place] if place < len(self.moments) else None

    def encode(self) -> str:
        return json.dumps({"at": [moment.isoformat() for moment in self.moments]}, separators=(",", ":"))


def _checked(moments: Iterable[datetime]) -> tuple[datetime, ...]:
    found: set[datetime] = set()
    for moment in moments:
        if not isinstance(moment, datetime) or moment.utcoffset() is None:
            raise InvalidArgument("at", moment, "a datetime with a time zone, or a list of them")
        found.add(moment.astimezone(UTC))
        if len(found) > MOST_INSTANTS:
            raise InvalidArgument("at", f"more than {MOST_INSTANTS}", f"at most {MOST_INSTANTS} instants")
    if not found:
        raise InvalidArgument("at", (), "at least one instant")
    return tuple(sorted(found))
