"""How many jobs fall due in each second of a day: by the triggers' own code, once for each trigger."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache

from benchmarks.scale.mixture import Burst
from mainspring.triggers.cron import Cron

DAY = 24 * 60 * 60
START = datetime(2027, 3, 1, tzinfo=UTC)
"""A Monday and the first of a month: weekly and monthly schedules are due, too."""
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True)
class Due:
    """Slots of one second, whose jobs are spread over the same window."""

    second: int
    window: int
    slots: int
    triggers: int = 1
    """How many of them there are: each is opened, and fired by statements of its own."""


@cache
def seconds(cron: str, tz: str) -> tuple[int, ...]:
    """The slots of the day."""
    trigger, found = Cron(cron, tz), []
    slot = trigger.next_after(START - _INSTANT)
    while slot is not None and (second := int((slot - START).total_seconds())) < DAY:
        found.append(second)
        slot = trigger.next_after(slot)
    return tuple(found)


def share(schedules: int, sets: int, number: int) -> int:
    """Of schedules that are dealt out to so many shard sets: those of one of them. The first get what is
    over, so that set 0 is the largest."""
    return schedules // sets + (number < schedules % sets)


def day(bursts: Iterable[Burst], sets: int = 1, number: int = 0) -> list[Due]:
    """What falls due in one shard set, in order."""
    slots: dict[tuple[int, int], int] = defaultdict(int)
    triggers: dict[tuple[int, int], int] = defaultdict(int)
    for burst in bursts:
        here = share(burst.schedules, sets, number)
        if here:
            for second in seconds(burst.cron, burst.tz):
                slots[second, burst.window] += here
                triggers[second, burst.window] += 1
    return [Due(*key, slots[key], triggers[key]) for key in sorted(slots)]
