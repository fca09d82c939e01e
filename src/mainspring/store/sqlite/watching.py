"""One look at what stands out, on SQLite."""

from __future__ import annotations

from mainspring.model.fleet import Role
from mainspring.model.queue import QueuePause
from mainspring.model.trouble import Died, Facts, Late, Lost, Overdue, Waiting, Watched
from mainspring.store.ports import Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, maybe_length, maybe_moment, moment, span
from mainspring.store.streaks import SCHEDULES, streaks


class SQLiteWatch:
    """WatchStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def watch(self, watched: Watched, *, at: Stamp) -> Facts:
        return await self._database.read(lambda session: _look(session, watched, session.now(at)))


def _look(session: Session, watched: Watched, now: int) -> Facts:
    most = watched.most
    standing = session.row("watch_scheduled", now=now)
    died = session.rows("watch_died", most=most)
    failing = list(dict.fromkeys(row["schedule_id"] for row in died if row["schedule"]))[:SCHEDULES]
    runs = session.rows("watch_streaks", schedule_ids=listed(failing), streak=watched.streak)
    return Facts(
        now=moment(now),
        members=tuple(rows.member(row) for row in session.rows("members", now=now)),
        lost=tuple(
            Lost(name=row["name"], role=Role(row["role"]), lost_at=moment(row["lost_at"]))
            for row in session.rows("watch_lost", now=now, lost_window=span(watched.lost_window), most=most)
        ),
        scheduled=bool(standing["scheduled"]),
        behind_since=maybe_moment(standing["behind_since"]),
        overdue=tuple(
            Overdue(
                schedule=row["name"],
                slot_at=moment(row["slot_at"]),
                expect_start_within=maybe_length(row["expect_start_within"]),
            )
            for row in session.rows(
                "watch_overdue", now=now, missed_after=span(watched.missed_after), most=most
            )
        ),
        late=(*_expected(session, now, most), *_stale(session, now, watched)),
        waiting=tuple(
            Waiting(queue=row["queue"], task=row["task"], job_id=row["id"], due_at=moment(row["due_at"]))
            for row in session.rows("watch_waiting", now=now, most=most)
        ),
        pauses=tuple(
            QueuePause(
                queue=row["queue"],
                paused_at=moment(row["paused_at"]),
                paused_by=row["paused_by"],
                note=row["note"],
            )
            for row in session.rows("queue_pauses")
        ),
        died=tuple(
            Died(
                job_id=row["id"],
                task=row["task"],
                died_at=moment(row["died_at"]),
                reason=row["reason"],
                schedule=row["schedule"],
            )
            for row in died
        ),
        grown=session.row("watch_grown", now=now, dead_window=span(watched.dead_window))["grown"],
        streaks=streaks(
            (row["name"], moment(row["slot_at"]), bool(row["dead"]), bool(row["live"])) for row in runs
        ),
    )


def _expected(session: Session, now: int, most: int) -> list[Late]:
    return [
        Late(
            schedule=row["name"],
            slot_at=moment(row["slot_at"]),
            job_id=row["id"],
            queue=row["queue"],
            due_at=maybe_moment(row["due_at"]),
            claimed=bool(row["claimed"]),
            begun=bool(row["begun"]),
            expect_start_within=maybe_length(row["expect_start_within"]),
            expect_finish_by=maybe_length(row["expect_finish_by"]),
        )
        for row in session.rows("watch_expecting", now=now, most=most)
    ]


def _stale(session: Session, now: int, watched: Watched) -> list[Late]:
    found = session.rows("watch_stale", now=now, late_after=span(watched.late_after), most=watched.most)
    return [
        Late(
            schedule=row["name"],
            slot_at=moment(row["slot_at"]),
            job_id=row["id"],
            queue=row["queue"],
            due_at=moment(row["due_at"]),
            claimed=False,
            begun=False,
        )
        for row in found
    ]
