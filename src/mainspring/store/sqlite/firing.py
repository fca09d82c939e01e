"""Firing on SQLite: several statements of one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast

from mainspring.model.schedule import DROPPED, Chunk, Drop, Opening, Skipped
from mainspring.store.database import Stamp, Transaction
from mainspring.store.declaring import NO_BREAKER, Due
from mainspring.store.rows import maybe_moment, moment
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.connection import Transaction as SQLiteTransaction
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, span
from mainspring.triggers.misfire import LATE


class SQLiteFiring:
    """Firing on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fire(self, *, limit: int, breaker: int, at: Stamp) -> Chunk | None:
        def work(session: Session) -> Chunk | None:
            found = session.rows("oldest_firing")
            return _fire(session, found[0], limit, breaker, session.now(at)) if found else None

        return await self._database.write(work)

    async def decide(self, tx: Transaction, due: Sequence[Due], *, at: datetime) -> int:
        session = cast("SQLiteTransaction", tx).session
        made = 0
        for one in due:
            opened = {
                "spec_id": one.schedule.spec_id,
                "slot_at": micros(one.opening.slot_at),
                "since": micros(one.opening.since),
                "combined": self.combined(one.opening),
                "skip": one.skip,
                "note": one.opening.note,
                "previous_at": None,
            }
            key = one.schedule.id
            decided = _write(session, opened, key - 1, key, NO_BREAKER, micros(at))
            made += sum(row["job_id"] is not None for row in decided)
        return made

    def combined(self, opening: Opening) -> str | None:
        return listed(map(micros, opening.combined)) if opening.combined else None


def _fire(session: Session, fire: sqlite3.Row, limit: int, breaker: int, now: int) -> Chunk:
    burst = session.row("burst", spec_id=fire["spec_id"], last_id=fire["last_id"], limit=limit)
    decided = _write(session, fire, fire["last_id"], burst["last_id"], breaker, now)
    which = {"spec_id": fire["spec_id"], "slot_at": fire["slot_at"]}
    if burst["taken"] == limit:
        session.change("forward_firing", **which, burst_end=burst["last_id"])
    else:
        session.change("close_firing", **which)
    skipped = [row for row in decided if row["job_id"] is None]
    slot_at = moment(fire["slot_at"])
    if len(skipped) < len(decided):
        session.hint()
    return Chunk(
        slot_at=slot_at,
        fired=len(decided) - len(skipped),
        skipped=len(skipped),
        late=moment(now) - slot_at,
        since=maybe_moment(fire["since"]),
        dropped=_drops(session, skipped),
    )


def _write(
    session: Session,
    opened: Mapping[str, object] | sqlite3.Row,
    after: int,
    until: int | None,
    breaker: int,
    now: int,
) -> list[sqlite3.Row]:
    """Ledger rows and jobs of one opened slot, for the schedules of its spec with ids later than `after` and
    up to `until`; answers the rows."""
    last_job_id: int = session.row("reserve_ids")["id"]
    part = {
        "spec_id": opened["spec_id"],
        "slot_at": opened["slot_at"],
        "last_id": after,
        "burst_end": until,
        "last_job_id": last_job_id,
        "missed_after": span(LATE),
        "now": now,
    }
    decided = session.rows(
        "write_ledger",
        **part,
        since=opened["since"],
        combined=opened["combined"],
        skip=opened["skip"],
        note=opened["note"],
        breaker=breaker,
    )
    counted = [row["schedule_id"] for row in decided if row["job_id"] is not None]
    if counted:
        _replace(session, part, now)
        session.change("fire", **part, previous_at=opened["previous_at"])
    if len(counted) < len(decided):
        counted += [row["schedule_id"] for row in decided if row["reason"] == Skipped.REQUESTED]
    session.change("count_down", ids=listed(counted), combined=opened["combined"])
    return decided


def _drops(session: Session, skipped: Sequence[sqlite3.Row]) -> tuple[Drop, ...]:
    reasons = {row["schedule_id"]: Skipped(row["reason"]) for row in skipped if row["reason"] in DROPPED}
    if not reasons:
        return ()
    found = session.rows("names_of", ids=listed(reasons))
    return tuple(Drop(schedule=row["name"], reason=reasons[row["id"]]) for row in found)


def _replace(session: Session, part: Mapping[str, object], now: int) -> None:
    """Cancel the jobs that the new jobs replace."""
    if replaced := [row["id"] for row in session.rows("replaced_jobs", **part)]:
        session.rows("cancel_jobs", ids=listed(replaced), now=now)
