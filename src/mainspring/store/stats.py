"""Statistics over time: counters and histograms by the minute, ten minutes, hour and day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

import msgspec

from mainspring.model.stats import ALL, SPANS, Stat, StatFilter, Tally
from mainspring.store.database import Database, Stamp, reads
from mainspring.store.rows import reader

KEPT = dict(
    zip(
        SPANS,
        (timedelta(hours=25), timedelta(days=15), timedelta(days=100), timedelta(days=400)),
        strict=True,
    )
)
_stat = reader(Stat)


class Stats:
    """Counters and histograms. New values may be lost in a crash of the server."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, tallies: Sequence[Tally], *, at: Stamp) -> None:
        """Add these tallies to the present spans. Tallies of tasks are also added to the total of all
        tasks."""
        written = msgspec.json.encode(_with_total(tallies)).decode()
        await self._database.relaxed("add_stats", tallies=written, spans=list(SPANS), at=at)

    @reads
    async def find(self, which: StatFilter) -> list[Stat]:
        """The sums for each step, in order. Steps without any counts are left out."""
        found = await self._database.fetch(
            "stats",
            since=which.since,
            until=which.until,
            step=which.step,
            span=which.span,
            task=which.task,
            queue=which.queue,
            by=which.by,
            one=which.one,
        )
        # SQLite cannot add up lists: it answers each row that PostgreSQL has summed up.
        steps = groupby(map(_stat, found), key=attrgetter("at", "key"))
        return [_summed_up(list(step)) for _, step in steps]

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        """Delete old rows; answer how many. `KEPT` has the age for each span. Rows of a day are kept at least
        for `keep`."""
        gone = 0
        for span in SPANS:
            old = await self._database.relaxed("prune_stats", span=span, keep=_kept(span, keep), at=at)
            gone += len(old)
        return gone


def _kept(span: int, history: timedelta) -> timedelta:
    """How long rows of a span are kept. Rows of a day are kept at least as long as history."""
    return max(KEPT[span], history) if span == SPANS[-1] else KEPT[span]


def _with_total(tallies: Sequence[Tally]) -> list[Tally]:
    """The tallies, and the total of all tasks, which is asked for most often."""
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


def _summed_up(stats: Sequence[Stat]) -> Stat:
    """The sum of the rows of one step."""
    if len(stats) == 1:
        return stats[0]
    return msgspec.structs.replace(
        stats[0],
        counts=_summed([each.counts for each in stats]),
        waits=_summed([each.waits for each in stats]),
        tooks=_summed([each.tooks for each in stats]),
    )


def _summed(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*rows, strict=True)))
