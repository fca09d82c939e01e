"""One look at what stands out, on SQLite."""

from __future__ import annotations

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
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, maybe_length, maybe_moment, moment, span
from mainspring.store.streaks import HERD, Lists, streaks

MINUTE = 60_000_000
EPOCH_2000 = 946_684_800_000_000


class SQLiteWatch:
    """WatchStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def watch(self, watched: Watched, *, at: Stamp) -> Facts:
        return await self._database.read(lambda session: _look(session, watched, session.now(at)))


def _look(session: Session, watched: Watched, now: int) -> Facts:
    most, scanned = watched.most, watched.scanned
    lists = Lists(most)
    standing = session.row("watch_scheduled", now=now)
    window = span(watched.failed_window)
    died = session.rows("watch_died", now=now, failed_window=window, counted=COUNTED, most=most)
    grown = session.row(
        "watch_grown",
        now=now,
        dead_window=span(watched.dead_window),
        counted=max(COUNTED, watched.dead_growth),
    )
    failing = session.rows(
        "watch_failing", failing=watched.failing, streak=watched.streak, scanned=scanned, most=most
    )
    ids = [row["schedule_id"] for row in lists.cut("failing", failing)]
    runs = session.rows("watch_streaks", schedule_ids=listed(ids), streak=watched.streak)
    lost = session.rows("watch_lost", now=now, lost_window=span(watched.lost_window), most=most)
    overdue = session.rows(
        "watch_overdue",
        now=now,
        missed_after=span(watched.missed_after),
        scanned=scanned,
        herd=HERD,
        most=most,
    )
    dropped = session.rows(
        "watch_dropped", now=now, dropped_window=span(watched.dropped_window), scanned=scanned, most=most
    )
    late = (*_expected(session, now, lists, most), *_stale(session, now, lists, watched))
    waiting = lists.cut("waiting", session.rows("watch_waiting", now=now, most=most), times=10)
    retrying = session.rows("watch_retrying", now=now, fine=_fine(now), most=most)
    gaps = session.rows("watch_gaps", now=now, failed_window=window, most=most)
    return Facts(
        now=moment(now),
        members=tuple(rows.member(row) for row in session.rows("members", now=now)),
        lost=tuple(
            Lost(name=row["name"], role=Role(row["role"]), lost_at=moment(row["lost_at"]))
            for row in lists.cut("lost", lost)
        ),
        scheduled=bool(standing["scheduled"]),
        behind_since=maybe_moment(standing["behind_since"]),
        overdue=tuple(
            Overdue(
                schedule=row["name"],
                slot_at=moment(row["slot_at"]),
                expect_start_within=maybe_length(row["expect_start_within"]),
            )
            for row in lists.cut("overdue", overdue)
        ),
        dropped=tuple(
            Dropped(
                schedule=row["name"],
                since=moment(row["since"]),
                until=moment(row["until"]),
                dropped_at=moment(row["dropped_at"]),
                breaker=bool(row["breaker"]),
            )
            for row in lists.cut("dropped", dropped)
        ),
        late=late,
        waiting=tuple(
            Waiting(queue=row["queue"], task=row["task"], job_id=row["id"], due_at=moment(row["due_at"]))
            for row in waiting
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
                task=row["task"],
                jobs=row["jobs"],
                since=moment(row["since"]),
                job_id=row["id"],
                died_at=moment(row["died_at"]),
                reason=row["reason"],
                schedule=row["schedule"],
            )
            for row in lists.cut("died", died)
        ),
        grown=grown["grown"],
        grown_since=maybe_moment(grown["since"]),
        streaks=streaks(
            (row["name"], moment(row["slot_at"]), bool(row["dead"]), bool(row["live"])) for row in runs
        ),
        retrying=tuple(
            Retrying(
                task=row["task"],
                failed=row["failed"],
                succeeded=row["succeeded"],
                since=moment(row["since"]),
            )
            for row in lists.cut("retrying", retrying)
        ),
        gaps=tuple(Gap(began_at=moment(row["began_at"]), ended_at=moment(row["ended_at"])) for row in gaps),
        cut=lists.rules,
    )


def _fine(now: int) -> int:
    """From when on rows of single minutes are read; those of ten minutes end there."""
    before = now - 10 * MINUTE
    return before - (before - EPOCH_2000) % (10 * MINUTE)


def _expected(session: Session, now: int, lists: Lists, most: int) -> list[Late]:
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
        for row in lists.cut("expected", session.rows("watch_expecting", now=now, most=most), times=2)
    ]


def _stale(session: Session, now: int, lists: Lists, watched: Watched) -> list[Late]:
    found = session.rows(
        "watch_stale",
        now=now,
        late_after=span(watched.late_after),
        scanned=watched.scanned,
        most=watched.most,
    )
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
        for row in lists.cut("stale", found)
    ]
