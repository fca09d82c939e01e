"""What every trigger can do, and a trigger between a start and an end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from mainspring.errors import InvalidArgument

_TICK = timedelta(microseconds=1)


class Trigger(Protocol):
    """A rule that names instants. Its answers depend only on the instant in the question, not on the
    clock."""

    def next_after(self, moment: datetime) -> datetime | None:
        """The first slot strictly after `moment`, aware and in UTC; None when there is no more."""

    def encode(self) -> str:
        """Canonical JSON: equal triggers give equal text, and `codec.decode` reads it back."""


@dataclass(frozen=True, slots=True)
class Bounded:
    """The slots of another trigger from `start` on and before `end`.

    Bounds around bounds become one, so that two ways to write the same are equal.
    """

    trigger: Trigger
    start: datetime | None = None
    end: datetime | None = None

    def __post_init__(self) -> None:
        start, end, trigger = _utc("start", self.start), _utc("end", self.end), self.trigger
        if isinstance(trigger, Bounded):
            start = max(filter(None, (start, trigger.start)), default=None)
            end = min(filter(None, (end, trigger.end)), default=None)
            trigger = trigger.trigger
        if start is None and end is None:
            raise InvalidArgument("start", None, "a start, an end or both")
        if start is not None and end is not None and start >= end:
            raise InvalidArgument("end", end, f"an instant after the start, {start.isoformat()}")
        for name, value in (("trigger", trigger), ("start", start), ("end", end)):
            object.__setattr__(self, name, value)
        if start is not None and self.next_after(start - _TICK) is None:
            raise InvalidArgument("end" if end else "start", end or start, "room for at least one slot")

    def next_after(self, moment: datetime) -> datetime | None:
        if self.start is not None and moment < self.start:
            moment = self.start - _TICK
        slot = self.trigger.next_after(moment)
        return None if slot is not None and self.end is not None and slot >= self.end else slot

    def encode(self) -> str:
        facts: dict[str, object] = {"bounded": json.loads(self.trigger.encode())}
        if self.start is not None:
            facts["start"] = self.start.isoformat()
        if self.end is not None:
            facts["end"] = self.end.isoformat()
        return json.dumps(facts, sort_keys=True, separators=(",", ":"))


def _utc(name: str, moment: datetime | None) -> datetime | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise InvalidArgument(name, moment, "a datetime with a time zone")
    return moment.astimezone(UTC)
