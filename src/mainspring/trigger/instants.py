"""A list of instants, or just one."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from mainspring.errors import InvalidArgument

MOST = 1000


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
        if len(found) > MOST:
            raise InvalidArgument("at", f"more than {MOST}", f"at most {MOST} instants")
    if not found:
        raise InvalidArgument("at", (), "at least one instant")
    return tuple(sorted(found))
