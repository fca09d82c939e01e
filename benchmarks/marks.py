"""What the marks of jobs tell: how many ran, how often, how fast and how late. Pure, but for `read`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.mark import BEGAN, RECORD

EARLY = 0.05
"""Seconds that a firing may come before its slot and still be meant for it."""


class Mark(NamedTuple):
    kind: bytes
    number: int
    sent_at: float
    at: float
    process: int


def read(log: Path) -> list[Mark]:
    """In the order of their writing. A log that nobody has written to has none."""
    if not log.exists():
        return []
    written = log.read_bytes()
    return [Mark(*each) for each in RECORD.iter_unpack(written[: len(written) // RECORD.size * RECORD.size])]


def count(log: Path) -> int:
    """How many there are, without reading them: looking must not be work for the cores that are measured."""
    return log.stat().st_size // RECORD.size if log.exists() else 0


@dataclass(frozen=True)
class Tally:
    """How often numbers ran that should have run once."""

    expected: int
    once: int
    doubled: int
    """Runs beyond the first of their number."""

    @property
    def lost(self) -> int:
        return self.expected - self.once


def tally(marks: Iterable[Mark], expected: int) -> Tally:
    ran = Counter(mark.number for mark in marks if mark.kind == BEGAN)
    return Tally(expected=expected, once=len(ran), doubled=ran.total() - len(ran))


def per_second(times: Sequence[float]) -> float | None:
    """Between the first and the last; two moments are one interval."""
    if len(times) < 2:
        return None
    first, last = min(times), max(times)
    return (len(times) - 1) / (last - first) if last > first else None


def together(marks: Sequence[Mark], processes: int) -> float | None:
    """The rate from the moment at which the last of so many processes had its first job: they do not start in
    the same moment, and a short drain is over before that counts for little. None unless each had one."""
    first: dict[int, float] = {}
    for mark in marks:
        first.setdefault(mark.process, mark.at)
    if len(first) != processes:
        return None
    since = max(first.values())
    return per_second([mark.at for mark in marks if mark.at >= since])


def waits_ms(marks: Iterable[Mark]) -> list[float]:
    """From the moment at which each was to be sent to its handler's first line, in order."""
    return sorted((mark.at - mark.sent_at) * 1000 for mark in marks if mark.kind == BEGAN)


@dataclass(frozen=True)
class Firings:
    """What became of the slots of some schedules."""

    late: tuple[float, ...]
    """Seconds from the slot to the handler, in order."""
    missed: int
    doubled: int


def firings(ticks: Iterable[Mark], schedules: int, slots: Sequence[float]) -> Firings:
    """A tick is for the latest slot that had come, or nearly had. If that has its tick, it is for the newest
    earlier one that has none, and was late by more than a period; else it is one too many. What came before
    the first slot is not looked at."""
    taken: dict[tuple[int, float], float] = {}
    over: list[Mark] = []
    for tick in sorted(ticks, key=lambda each: each.at):
        come = [slot for slot in slots if slot <= tick.at + EARLY]
        if not come:
            continue
        if (tick.number, come[-1]) in taken:
            over.append(tick)
        else:
            taken[tick.number, come[-1]] = tick.at
    doubled = 0
    for tick in over:
        free = [slot for slot in slots if slot <= tick.at + EARLY and (tick.number, slot) not in taken]
        if free:
            taken[tick.number, free[-1]] = tick.at
        else:
            doubled += 1
    return Firings(
        late=tuple(sorted(at - slot for (_, slot), at in taken.items())),
        missed=schedules * len(slots) - len(taken),
        doubled=doubled,
    )
