"""Statistics over time on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import msgspec

from mainspring.model.stats import BUCKETS, PLACES, SPANS, Stat, StatFilter, Tally
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, moment, span
from mainspring.store.statistics import kept, with_total

MINUTE = 60_000_000
EPOCH_2000 = 946_684_800_000_000
_numbers = msgspec.json.Decoder(list[int])


class SQLiteStats:
    """StatStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_stats(self, tallies: Sequence[Tally], *, at: Stamp) -> None:
        def work(session: Session) -> None:
            now = session.now(at)
            session.each(
                "add_stats",
                [
                    {
                        "span": minutes,
                        "at": _step(now, EPOCH_2000, minutes * MINUTE),
                        "task": each.task,
                        "queue": each.queue,
                        "counts": listed(each.counts),
                        "waits": listed(each.waits),
                        "tooks": listed(each.tooks),
                    }
                    for minutes in SPANS
                    for each in with_total(tallies)
                ],
            )

        await self._database.write(work, durable=False)

    async def stats(self, which: StatFilter) -> list[Stat]:
        def work(session: Session) -> list[Stat]:
            since, step = micros(which.since), span(which.step)
            sums: dict[tuple[int, str], tuple[list[int], list[int], list[int]]] = {}
            for row in session.rows(
                "stats",
                since=since,
                until=micros(which.until),
                span=which.span,
                task=which.task,
                queue=which.queue,
                by=which.by,
                one=which.one,
            ):
                place = _step(row["at"], since, step), row["key"]
                total = sums.setdefault(place, ([0] * PLACES, [0] * BUCKETS, [0] * BUCKETS))
                for name, numbers in zip(("counts", "waits", "tooks"), total, strict=True):
                    numbers[:] = map(sum, zip(numbers, _numbers.decode(row[name]), strict=True))
            return [
                Stat(at=moment(at), key=key, counts=tuple(c), waits=tuple(w), tooks=tuple(t))
                for (at, key), (c, w, t) in sorted(sums.items())
            ]

        return await self._database.read(work)

    async def prune_stats(self, *, keep: timedelta, at: Stamp) -> int:
        def work(session: Session) -> int:
            now = session.now(at)
            return sum(
                session.change("prune_stats", span=each, before=now - span(kept(each, keep)))
                for each in SPANS
            )

        return await self._database.write(work, durable=False)


def _step(at: int, since: int, step: int) -> int:
    return at - (at - since) % step
