"""Statistics over time on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.model.stats import SPANS, Stat, StatFilter, Tally
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.store.statistics import kept, with_total


class PostgresStats:
    """StatStore on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_stats(self, tallies: Sequence[Tally], *, at: Stamp) -> None:
        tallies = with_total(tallies)
        await self._database.relaxed(
            "add_stats",
            spans=list(SPANS),
            tasks=[each.task for each in tallies],
            queues=[each.queue for each in tallies],
            counts=[_array(each.counts) for each in tallies],
            waits=[_array(each.waits) for each in tallies],
            tooks=[_array(each.tooks) for each in tallies],
            at=at,
        )

    async def stats(self, which: StatFilter) -> list[Stat]:
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
        return [
            Stat(
                at=row["at"],
                key=row["key"],
                counts=tuple(row["counts"]),
                waits=tuple(row["waits"]),
                tooks=tuple(row["tooks"]),
                mark=row["mark"],
            )
            for row in found
        ]

    async def prune_stats(self, *, keep: timedelta, at: Stamp) -> int:
        gone = 0
        for span in SPANS:
            [row] = await self._database.relaxed("prune_stats", span=span, keep=kept(span, keep), at=at)
            gone += row["gone"]
        return gone


def _array(values: Sequence[int]) -> str:
    """As text: a list of lists would be one array of two dimensions."""
    return "{" + ",".join(map(str, values)) + "}"
