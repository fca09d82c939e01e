"""How late jobs were, from two lines: when they should have been, and when they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.scale.curve import Curve

POINTS = 100_000
"""Jobs looked at in all, about. Of a burst they are evenly among its jobs, and the last one is one of
them."""


@dataclass(frozen=True)
class Lateness:
    """Seconds."""

    p50: float = 0.0
    p99: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class Sample:
    """A job, and how many it stands for."""

    at: float
    late: float
    weight: float


def samples(first: Curve, then: Curve) -> Iterator[Sample]:
    """Jobs of every stretch of the line; the n-th that should have been is the n-th that was."""
    numbers, weights, times = [], [], []
    each = min(max(POINTS // len(first.times), 4), 100)
    for corner in range(1, len(first.times)):
        low, high = first.totals[corner - 1], first.totals[corner]
        if high > low:
            at_once = first.times[corner] == first.times[corner - 1]
            points = each if at_once else 1
            for point in range(1, points + 1):
                numbers.append(low + (high - low) * point / points)
                weights.append((high - low) / points)
                times.append(first.times[corner])
    for at, weight, done in zip(times, weights, then.when(numbers), strict=True):
        yield Sample(at, max(done - at, 0.0), weight)


def summed(found: Sequence[Sample]) -> Lateness:
    """Of all of these."""
    if not found:
        return Lateness()
    ordered = sorted(found, key=lambda each: each.late)
    total = sum(each.weight for each in ordered)
    return Lateness(_percentile(ordered, total * 0.50), _percentile(ordered, total * 0.99), ordered[-1].late)


def by_minute(found: Sequence[Sample], minutes: int) -> list[Lateness]:
    """Of those that should have been in each minute."""
    groups: list[list[Sample]] = [[] for _ in range(minutes)]
    for each in found:
        if each.at < minutes * 60:
            groups[int(each.at // 60)].append(each)
    return [summed(group) for group in groups]


def _percentile(ordered: Sequence[Sample], weight: float) -> float:
    so_far = 0.0
    for each in ordered:
        so_far += each.weight
        if so_far >= weight:
            return each.late
    return ordered[-1].late
