"""How long rows of statistics are kept, by the minutes they stand for."""

from __future__ import annotations

from datetime import timedelta

from mainspring.model.stats import SPANS

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
