"""Statistics over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from mainspring.model.stats import Stat, StatFilter, Tally
from mainspring.store.ports.stamp import Stamp


class StatStore(Protocol):
    """Counters and histograms. What is added may be lost in a crash of the server."""

    async def add_stats(self, tallies: Sequence[Tally], *, at: Stamp) -> None:
        """Add to what is there for now. Those of tasks are added to the sum of all of them too."""

    async def stats(self, which: StatFilter) -> list[Stat]:
        """Summed up, in order; steps in which nothing happened are left out."""

    async def prune_stats(self, *, keep: timedelta, at: Stamp) -> int:
        """Drop rows of a minute after a day, of ten after a fortnight, of an hour after a season, of a day
        after a year or `keep`, whichever is longer; answer how many."""
