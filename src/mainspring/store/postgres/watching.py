"""One look at what stands out, on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.model.fleet import Role
from mainspring.model.queue import QueuePause
from mainspring.model.trouble import Died, Facts, Late, Lost, Overdue, Waiting, Watched
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.names import Names
from mainspring.store.streaks import SCHEDULES, streaks

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


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
        overdue = await look("watch_overdue", missed_after=watched.missed_after)
        expected = await look("watch_expecting")
        stale = await look("watch_stale", late_after=watched.late_after)
        waiting = await look("watch_waiting")
        lost = await look("watch_lost", lost_window=watched.lost_window)
        died = await transaction.fetch("watch_died", most=watched.most)
        [grown] = await transaction.fetch("watch_grown", at=at, dead_window=watched.dead_window)
        runs = await transaction.fetch("watch_streaks", schedule_ids=_failing(died), streak=watched.streak)
        pauses = await transaction.fetch("queue_pauses")
        members = await transaction.fetch("members", at=at)
        queue_ids = {row["queue_id"] for row in (*expected, *stale, *waiting)}
        await self._names.learn(queue_ids, {row["task_id"] for row in (*waiting, *died)}, within=transaction)
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
                    job_id=row["id"],
                    task=self._names.task(row["task_id"]),
                    died_at=row["died_at"],
                    reason=row["reason"],
                    schedule=row["schedule"],
                )
                for row in died
            ),
            grown=grown["grown"],
            streaks=streaks((row["name"], row["slot_at"], row["dead"], row["live"]) for row in runs),
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


def _failing(died: list[Record]) -> list[int]:
    """Schedules of the newest dead letters, each once."""
    return list(dict.fromkeys(row["schedule_id"] for row in died if row["schedule"]))[:SCHEDULES]
