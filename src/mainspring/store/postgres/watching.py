"""One look at what stands out, on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.model.fleet import Role
from mainspring.model.queue import QueuePause
from mainspring.model.trouble import (
    COUNTED,
    Died,
    Dropped,
    Facts,
    Gap,
    Late,
    Lost,
    Overdue,
    Retrying,
    Waiting,
    Watched,
)
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.names import Names
from mainspring.store.streaks import HERD, Lists, streaks

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


_DROPPED = ("since", "until", "dropped_at", "breaker")


class PostgresWatch:
    """WatchStore on PostgreSQL."""

    def __init__(self, database: Database, names: Names) -> None:
        self._database = database
        self._names = names

    async def watch(self, watched: Watched, *, at: Stamp) -> Facts:
        async with self._database.transaction("watch") as transaction:
            return await self._look(transaction, watched, at)

    async def _look(self, transaction: Transaction, watched: Watched, at: Stamp) -> Facts:
        async def look(statement: str, **params: object) -> list[Record]:
            return await transaction.fetch(statement, at=at, most=watched.most, **params)

        [standing] = await transaction.fetch("watch_scheduled", at=at)
        [clock] = await transaction.fetch("now", at=at)
        lists, scanned, counted = Lists(watched.most), watched.scanned, COUNTED
        overdue = lists.cut(
            "overdue",
            await look("watch_overdue", missed_after=watched.missed_after, scanned=scanned, herd=HERD),
        )
        dropped = lists.cut(
            "dropped", await look("watch_dropped", dropped_window=watched.dropped_window, scanned=scanned)
        )
        expected = lists.cut("expected", await look("watch_expecting"), times=2)
        stale = lists.cut("stale", await look("watch_stale", late_after=watched.late_after, scanned=scanned))
        waiting = lists.cut("waiting", await look("watch_waiting"), times=10)
        lost = lists.cut("lost", await look("watch_lost", lost_window=watched.lost_window))
        died = lists.cut(
            "died", await look("watch_died", failed_window=watched.failed_window, counted=counted)
        )
        [grown] = await transaction.fetch(
            "watch_grown",
            at=at,
            dead_window=watched.dead_window,
            counted=max(counted, watched.dead_growth),
        )
        failing = lists.cut(
            "failing",
            await transaction.fetch(
                "watch_failing",
                failing=watched.failing,
                streak=watched.streak,
                scanned=scanned,
                most=watched.most,
            ),
        )
        runs = await transaction.fetch(
            "watch_streaks",
            schedule_ids=[row["schedule_id"] for row in failing],
            streak=watched.streak,
        )
        retrying = lists.cut("retrying", await look("watch_retrying"))
        gaps = await look("watch_gaps", failed_window=watched.failed_window)
        pauses = await transaction.fetch("queue_pauses")
        members = await transaction.fetch("members", at=at)
        queue_ids = {row["queue_id"] for row in (*expected, *stale, *waiting)}
        await self._names.learn(queue_ids, {row["task_id"] for row in waiting}, within=transaction)
        return Facts(
            now=clock["now"],
            members=tuple(rows.member(row) for row in members),
            lost=tuple(
                Lost(name=row["name"], role=Role(row["role"]), lost_at=row["lost_at"]) for row in lost
            ),
            scheduled=standing["scheduled"],
            behind_since=standing["behind_since"],
            overdue=tuple(
                Overdue(
                    schedule=row["name"],
                    slot_at=row["slot_at"],
                    expect_start_within=row["expect_start_within"],
                )
                for row in overdue
            ),
            dropped=tuple(
                Dropped(schedule=row["name"], **{each: row[each] for each in _DROPPED}) for row in dropped
            ),
            late=(
                *(self._late(row, row["expect_start_within"], row["expect_finish_by"]) for row in expected),
                *(self._late(row, None, None) for row in stale if row["name"] is not None),
            ),
            waiting=tuple(
                Waiting(
                    queue=self._names.queue(row["queue_id"]),
                    task=self._names.task(row["task_id"]),
                    job_id=row["id"],
                    due_at=row["due_at"],
                )
                for row in waiting
            ),
            pauses=tuple(QueuePause(**dict(row)) for row in pauses),
            died=tuple(
                Died(
                    task=row["task"],
                    jobs=row["jobs"],
                    since=row["since"],
                    job_id=row["id"],
                    died_at=row["died_at"],
                    reason=row["reason"],
                    schedule=row["schedule"],
                )
                for row in died
            ),
            grown=grown["grown"],
            grown_since=grown["since"],
            streaks=streaks((row["name"], row["slot_at"], row["dead"], row["live"]) for row in runs),
            retrying=tuple(Retrying(**dict(row)) for row in retrying),
            gaps=tuple(Gap(**dict(row)) for row in gaps),
            cut=lists.rules,
        )

    def _late(self, row: Record, start: timedelta | None, finish: timedelta | None) -> Late:
        expected = start is not None or finish is not None
        return Late(
            schedule=row["name"],
            slot_at=row["slot_at"],
            job_id=row["id"],
            queue=self._names.queue(row["queue_id"]),
            due_at=row["due_at"],
            claimed=expected and row["claimed"],
            begun=expected and row["begun"],
            expect_start_within=start,
            expect_finish_by=finish,
        )
