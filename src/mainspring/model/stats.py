"""Statistics over time: counters and histograms, by task and queue. The record is `Run` and `Slot`."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from mainspring.model.run import Verdict
from mainspring.model.value import Value

PLACES = 16
"""Room for what may be counted one day."""
BOUNDS: tuple[float, ...] = tuple(0.001 * 2.0**n for n in range(25))
"""Upper ends of the buckets in seconds: a millisecond, two, four … 4.7 hours. One more holds the rest."""
BUCKETS = len(BOUNDS) + 1
SPANS = (1, 10, 60, 1440)
"""Minutes that a row stands for."""
ALL = "*"
"""The task and queue of a row that is the sum of all of them."""
OTHER = "(other)"
"""The name of everything that has no series of its own."""


class Counted(IntEnum):
    """What is counted, by its place. Never reuse one."""

    SUCCEEDED = 0
    FAILED = 1
    DEAD = 2
    RELEASED = 3
    CRASHED = 4
    CANCELLED = 5
    SNOOZED = 6
    DISCARDED = 7
    EDITED = 8
    STARTED = 9
    FIRED = 10
    """Slots that made a job."""
    SKIPPED = 11
    """Slots that made none."""
    LATE = 12
    """Slots that were dealt with late."""
    DIED = 13
    """Jobs that became dead letters, by whatever way."""


OF_VERDICT = {verdict: Counted[verdict.name] for verdict in Verdict}


def bucket(length: timedelta) -> int:
    """The place of a length of time in a histogram."""
    return bisect_left(BOUNDS, length.total_seconds())


def quantile(histogram: Sequence[int], part: float) -> float | None:
    """Seconds within which this part of all were done, as well as the buckets tell: inside one, lengths are
    taken for evenly spread on a logarithmic scale. None when there were none."""
    total = sum(histogram)
    if not total:
        return None
    left = part * total
    for place, count in enumerate(histogram):
        if count and left <= count:
            high = BOUNDS[min(place, len(BOUNDS) - 1)]
            return high if place in (0, len(BOUNDS)) else high * math.exp2(left / count - 1)
        left -= count
    return BOUNDS[-1]


class Tally(Value, frozen=True, kw_only=True):
    """What one process has to add, all of it for now. Without a task and a queue it is the fleet's."""

    task: str = ""
    queue: str = ""
    counts: tuple[int, ...]
    waits: tuple[int, ...]
    """How long jobs had been due when a worker took them; of the fleet, how late slots were."""
    tooks: tuple[int, ...]


class By(StrEnum):
    """What to group by."""

    TASK = "task"
    QUEUE = "queue"


class StatFilter(Value, frozen=True, kw_only=True):
    """Which statistics: from `since` on and before `until`, one for each `step`."""

    since: datetime
    until: datetime
    step: timedelta
    span: int
    """Minutes of the rows to sum up: one of SPANS, no longer than the step."""
    task: str | None = None
    queue: str | None = None
    by: By | None = None
    fleet: bool = False
    """The fleet's own, rather than those of tasks."""

    @property
    def one(self) -> str | None:
        """The task of the rows to read, if one row holds all that is wanted."""
        if self.fleet:
            return ""
        return ALL if self.task is None and self.queue is None and self.by is None else None


class Stat(Value, frozen=True, kw_only=True):
    """What happened in one step."""

    at: datetime
    """Where it begins."""
    key: str = ""
    """The task or queue, if the statistics are grouped."""
    counts: tuple[int, ...]
    waits: tuple[int, ...]
    tooks: tuple[int, ...]
    mark: int | None = None
    """How many bytes the database had written to its log by then, if it reports that; of the fleet only."""

    def count(self, *what: Counted) -> int:
        """How many of these there were."""
        return sum(self.counts[each] for each in what)
