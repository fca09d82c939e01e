"""What both dialects do alike with statistics: how long rows are kept, and the sum of all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.model.stats import ALL, SPANS, Tally

KEPT = dict(
    zip(
        SPANS,
        (timedelta(hours=25), timedelta(days=15), timedelta(days=100), timedelta(days=400)),
        strict=True,
    )
)


def kept(span: int, history: timedelta) -> timedelta:
    """Days are kept for more than a year, and longer where history is."""
    return max(KEPT[span], history) if span == SPANS[-1] else KEPT[span]


def with_total(tallies: Sequence[Tally]) -> list[Tally]:
    """And the sum of those of tasks, which is what is asked for most."""
    own = [each for each in tallies if each.task]
    if not own:
        return list(tallies)
    total = Tally(
        task=ALL,
        queue=ALL,
        counts=_summed([each.counts for each in own]),
        waits=_summed([each.waits for each in own]),
        tooks=_summed([each.tooks for each in own]),
    )
    return [*tallies, total]


def _summed(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))
