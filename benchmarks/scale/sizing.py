"""How many shard sets it takes, and what a day is like with them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from benchmarks.scale.arrivals import DAY, day
from benchmarks.scale.lateness import Lateness, by_minute, samples, summed
from benchmarks.scale.mixture import Burst, Spread, mixture
from benchmarks.scale.simulation import Overrun, Primary, simulate

MINUTES = DAY // 60
TARGETS = (10.0, 1.0)
"""Seconds from when a job is due to its start, for 99 of 100."""
BUSY = 0.6
WAL_BYTES = 200e6
"""What the computed primary may write in a second: a disk and a standby have to follow."""


@dataclass(frozen=True)
class Outcome:
    """A day of the largest shard set, and what all of them have in common."""

    sets: int
    slots: int
    """Of all sets in the day."""
    burst: int
    """The most of them at one moment, of all sets."""
    triggers: int
    fired: Lateness
    """From the slot to its row in the ledger."""
    started: Lateness
    """From when a job is due to when it has been run: no-ops, so to its start."""
    deepest: int
    """Jobs that wait in one set, at most."""
    busy: float
    """The share of the day in which a primary is at work."""
    minutes: dict[str, list[float]]


def primaries(measured: Mapping[str, float], cores: int = 8) -> dict[str, Primary]:
    """As measured, where one machine does everything; and as computed for a server that has its cores to
    itself. The second is arithmetic: nobody has measured it."""
    opens = measured["trigger, ms"] / 1e3
    fires = max(measured["burst, slots/s"], measured["two schedulers, slots/s"])
    log = measured["burst, WAL bytes"], measured["run, WAL bytes"]
    cpu = measured["burst, server CPU µs"], measured["run, server CPU µs"]
    computed = [
        min(cores * BUSY * 1e6 / micros, WAL_BYTES / size) for micros, size in zip(cpu, log, strict=True)
    ]
    return {
        "measured": Primary(fires, measured["run, jobs/s"], opens),
        f"{cores} cores, computed": Primary(computed[0], computed[1], opens),
    }


@cache
def bursts(schedules: int, spread: Spread) -> list[Burst]:
    return mixture(schedules, spread)


@cache
def outcome(schedules: int, spread: Spread, primary: Primary, sets: int) -> Outcome | None:
    """None when the sets cannot do in a day what falls due in it."""
    found = bursts(schedules, spread)
    arrivals = day(found, sets)
    if sum(primary.seconds(each) for each in arrivals) > DAY:
        return None
    try:
        passed = simulate(arrivals, primary)
    except Overrun:
        return None
    fired, started = list(samples(passed.due, passed.fired)), list(samples(passed.wanted, passed.run))
    whole: dict[int, int] = {}
    for each in day(found):
        whole[each.second] = whole.get(each.second, 0) + each.slots
    by_fire, by_start = by_minute(fired, MINUTES), by_minute(started, MINUTES)
    return Outcome(
        sets=sets,
        slots=sum(whole.values()),
        burst=max(whole.values()),
        triggers=len(found),
        fired=summed(fired),
        started=summed(started),
        deepest=round(max(passed.depth)),
        busy=passed.busy / DAY,
        minutes={
            "due, all sets": _minutes(whole),
            "burst inserted after, s": [round(each.most, 1) for each in by_fire],
            "late p50, s": [round(each.p50, 1) for each in by_start],
            "late p99, s": [round(each.p99, 1) for each in by_start],
            "late at most, s": [round(each.most, 1) for each in by_start],
            "waiting in one set": [round(each) for each in passed.depth[:MINUTES]],
        },
    )


def _minutes(slots: Mapping[int, int]) -> list[float]:
    found = [0.0] * MINUTES
    for second, count in slots.items():
        found[second // 60] += count
    return found


def needed(good: Callable[[int], bool], guess: int = 1) -> int:
    """The fewest sets that are good, when more are never worse; quick if the guess is near."""
    low, high, step = guess - 1, guess, max(guess // 20, 1)
    while not good(high):
        low, high, step = high, high + step, step * 2
    while low > 0 and good(low):
        low, high, step = max(low - step, 0), low, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def sized(schedules: int, spread: Spread, primary: Primary, guesses: Sequence[int] = (1, 1)) -> list[Outcome]:
    """The days with as many sets as each target needs."""
    told = []
    for target, guess in zip(TARGETS, guesses, strict=True):

        def good(sets: int, target: float = target) -> bool:
            found = outcome(schedules, spread, primary, sets)
            return found is not None and found.started.p99 <= target

        found = outcome(schedules, spread, primary, needed(good, guess))
        assert found is not None
        told.append(found)
    return told


def least(schedules: int, spread: Spread, primary: Primary) -> int:
    """Sets that can do at all in a day what falls due in it."""
    return math.ceil(sum(primary.seconds(each) for each in day(bursts(schedules, spread))) / DAY)


def simulated(measured: Mapping[str, float], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Every size, spread and primary."""
    rows: list[dict[str, Any]] = []
    for name, primary in primaries(measured).items():
        for spread in Spread:
            guesses, before = [1, 1], 0
            for size in sizes:
                if before:  # as many schedules a set as before
                    guesses = [guess * size // before for guess in guesses]
                found = sized(size, spread, primary, guesses)
                guesses, before = [each.sets for each in found], size
                print(f"  {name}, {spread}, {size:,}: {guesses} sets", file=sys.stderr)
                for target, each in zip(TARGETS, found, strict=True):
                    row = {"primary": name, "spread": spread.value, "schedules": size, "target": target}
                    row |= {"least": least(size, spread, primary), **asdict(each)}
                    row["WAL, bytes a day"] = each.slots * (
                        measured["burst, WAL bytes"] + measured["run, WAL bytes"]
                    )
                    # Minute by minute once for each spread: that is what the pictures show.
                    if name != "measured" or size != sizes[0] or target != TARGETS[0]:
                        del row["minutes"]
                    rows.append(row)
    return rows
