"""Which schedules there are, when there are millions: shares of a kind that people write.

The shares are an assumption, and stand here to be changed. Half of all schedules are daily or rarer, and most
of those are for a round hour of somebody's morning or night: that is what makes bursts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

MINUTE = 60
HOUR = 60 * MINUTE
WINDOW = 15 * MINUTE
"""The longest window that a job is spread over, in seconds."""

ZONES = {
    "UTC": 20,
    "America/New_York": 14,
    "America/Chicago": 7,
    "America/Los_Angeles": 9,
    "America/Mexico_City": 2,
    "America/Sao_Paulo": 4,
    "Europe/London": 8,
    "Europe/Paris": 6,
    "Europe/Berlin": 8,
    "Africa/Lagos": 2,
    "Asia/Dubai": 2,
    "Asia/Kolkata": 7,
    "Asia/Singapore": 2,
    "Asia/Shanghai": 4,
    "Asia/Tokyo": 4,
    "Australia/Sydney": 2,
}
HOURS = {0: 25, 1: 8, 2: 12, 3: 10, 4: 6, 5: 5, 6: 8, 7: 5, 8: 6, 9: 8, 12: 3, 18: 2, 22: 2}
MINUTES = {0: 60, 30: 15, 15: 8, 5: 6, 10: 6, 45: 5}
RARE_HOURS = {0: 60, 9: 40}
"""The same for what is weekly or monthly."""
WEEKDAYS = {"1": 50, "5": 20, "0": 30}
DAYS = {"1": 70, "15": 15, "L": 15}


class Spread(StrEnum):
    """What was done about bursts."""

    NONE = "none"
    """Every schedule fires where its owner wrote it."""
    WINDOW = "window"
    """`window=` on every schedule: slots as written, jobs due at a stable place after them."""
    HASHED = "hashed"
    """The trigger itself names a second or minute that is the schedule's own, by a hash of its name."""


@dataclass(frozen=True)
class Burst:
    """Schedules that share a trigger."""

    cron: str
    tz: str
    schedules: int
    window: int
    """Seconds after the slot that their jobs are spread over."""


@dataclass(frozen=True)
class Kind:
    """Schedules of one rhythm, and their share of all."""

    name: str
    share: int
    period: int
    """Seconds."""


KINDS = (
    Kind("every minute", 1, MINUTE),
    Kind("every 5 minutes", 4, 5 * MINUTE),
    Kind("every 15 minutes", 8, 15 * MINUTE),
    Kind("every 30 minutes", 5, 30 * MINUTE),
    Kind("hourly, on the hour", 12, HOUR),
    Kind("hourly, at a minute of its own", 15, HOUR),
    Kind("daily", 40, 24 * HOUR),
    Kind("weekly", 10, 7 * 24 * HOUR),
    Kind("monthly", 5, 30 * 24 * HOUR),
)


def apportioned(whole: int, weights: Sequence[int]) -> list[int]:
    """The whole in parts as heavy as their weights; not one is lost. The largest remainders get the rest."""
    total = sum(weights)
    parts = [whole * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda n: (-(whole * weights[n] % total), n))
    for number in by_remainder[: whole - sum(parts)]:
        parts[number] += 1
    return parts


def mixture(schedules: int, spread: Spread = Spread.NONE) -> list[Burst]:
    """So many schedules, by trigger; triggers that nobody has are left out."""
    found = []
    for kind, count in zip(KINDS, apportioned(schedules, [kind.share for kind in KINDS]), strict=True):
        triggers = list(_triggers(kind, spread))
        counts = apportioned(count, [weight for _, _, weight in triggers])
        window = min(kind.period, WINDOW) if spread is Spread.WINDOW else 0
        found += [
            Burst(cron, tz, each, window)
            for (cron, tz, _), each in zip(triggers, counts, strict=True)
            if each
        ]
    return found


def _triggers(kind: Kind, spread: Spread) -> Iterator[tuple[str, str, int]]:
    """Expression, zone and weight."""
    hashed = spread is Spread.HASHED
    if kind.period <= HOUR:
        if hashed:
            yield from ((_periodic(kind.period, place), "UTC", 1) for place in range(kind.period))
        elif kind.name.endswith("of its own"):
            yield from ((f"{minute} * * * *", "UTC", 1) for minute in range(1, 60))
        else:
            yield f"*/{kind.period // MINUTE} * * * *" if kind.period < HOUR else "0 * * * *", "UTC", 1
        return
    minutes = dict.fromkeys(range(60), 1) if hashed else MINUTES
    for tz, here in ZONES.items():
        for hour, at in (HOURS if kind.name == "daily" else RARE_HOURS).items():
            for minute, past in minutes.items():
                for days, often in _days(kind).items():
                    yield f"{minute} {hour} {days}", tz, here * at * past * often


def _periodic(period: int, place: int) -> str:
    """Every so many seconds, at this second of each."""
    minute, second = divmod(place, MINUTE)
    every = period // MINUTE
    minutes = "*" if every == 1 else ",".join(str(each) for each in range(minute, 60, every))
    return f"{second} {minutes} * * * *"


def _days(kind: Kind) -> dict[str, int]:
    if kind.name == "weekly":
        return {f"* * {day}": weight for day, weight in WEEKDAYS.items()}
    if kind.name == "monthly":
        return {f"{day} * *": weight for day, weight in DAYS.items()}
    return {"* * *": 1}
