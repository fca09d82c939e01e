"""Specs, fires and the ledger on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from mainspring.model.schedule import DROPPED, Chunk, Drop, Opening, Skipped, SlotFacts, Spec
from mainspring.store.ports import Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, maybe_listed, maybe_moment, micros, moment, span
from mainspring.trigger.misfire import BREAKER, LATE


class SQLiteFiring:
    """The scheduler's half of ScheduleStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def due_specs(
        self, *, limit: int, beside: Sequence[int] = (), at: Stamp
    ) -> tuple[datetime, list[Spec]]:
        def work(session: Session) -> tuple[datetime, list[Spec]]:
            now = session.now(at)
            found = session.rows(
                "due_specs", now=now, limit=limit, beside=listed(beside), missed_after=span(LATE)
            )
            return moment(now), [rows.spec(row) for row in found]

        return await self._database.read(work)

    async def unplanned_specs(self, *, limit: int) -> list[Spec]:
        def work(session: Session) -> list[Spec]:
            return [rows.spec(row) for row in session.rows("unplanned_specs", limit=limit)]

        return await self._database.read(work)

    async def plan_specs(self, specs: Sequence[Spec]) -> None:
        batch = [
            {"id": spec.id, "next_at": micros(spec.next_at), "following_at": micros(spec.following_at)}
            for spec in specs
        ]
        await self._database.write(lambda session: session.each("plan_specs", batch))

    async def open_fires(self, openings: Sequence[Opening], *, at: Stamp) -> int:
        return await self._database.write(
            lambda session: sum(_open(session, opening) for opening in openings)
        )

    async def fire(self, *, limit: int, breaker: int = BREAKER, at: Stamp) -> Chunk | None:
        def work(session: Session) -> Chunk | None:
            found = session.rows("oldest_fire")
            return _fire(session, found[0], limit, breaker, session.now(at)) if found else None

        return await self._database.write(work)

    async def slot_facts(self, schedule_id: int, slot_at: datetime) -> SlotFacts:
        def work(session: Session) -> SlotFacts:
            return rows.slot_facts(
                session.row("slot_facts", schedule_id=schedule_id, slot_at=micros(slot_at))
            )

        return await self._database.read(work)

    async def release_held(self, *, at: Stamp) -> int:
        def work(session: Session) -> int:
            released = session.rows("release_held", now=session.now(at))
            if released:
                session.hint()
            return len(released)

        return await self._database.write(work)

    async def next_due(self, *, beside: Sequence[int] = (), at: Stamp) -> timedelta | None:
        def work(session: Session) -> timedelta | None:
            wait = session.row("next_due", now=session.now(at), beside=listed(beside))["wait"]
            return None if wait is None else timedelta(microseconds=wait)

        return await self._database.read(work)


def _open(session: Session, opening: Opening) -> int:
    moved = session.change(
        "move_spec",
        spec_id=opening.spec_id,
        expected=micros(opening.expected),
        next_at=micros(opening.next_at),
        slot_at=micros(opening.slot_at),
        skip=opening.skip,
    )
    if not moved:
        return 0
    return session.change(
        "open_fires",
        spec_id=opening.spec_id,
        slot_at=micros(opening.slot_at),
        since=micros(opening.since),
        combined=maybe_listed(map(micros, opening.combined)),
        skip=opening.skip,
        note=opening.note,
        previous_at=micros(opening.previous),
    )


def _fire(session: Session, fire: sqlite3.Row, limit: int, breaker: int, now: int) -> Chunk:
    herd = session.row("herd", spec_id=fire["spec_id"], last_id=fire["last_id"], limit=limit)
    which = {"spec_id": fire["spec_id"], "slot_at": fire["slot_at"]}
    opened = {**which, "since": fire["since"], "combined": fire["combined"], "skip": fire["skip"]}
    opened |= {"note": fire["note"], "previous_at": fire["previous_at"]}
    decided = write_slot(session, opened, fire["last_id"], herd["last_id"], breaker, now)
    if herd["taken"] == limit:
        session.change("forward_fire", **which, herd_end=herd["last_id"])
    else:
        session.change("close_fire", **which)
    skipped = [row for row in decided if row["job_id"] is None]
    return Chunk(
        slot_at=moment(fire["slot_at"]),
        fired=len(decided) - len(skipped),
        skipped=len(skipped),
        late=timedelta(microseconds=now - fire["slot_at"]),
        since=maybe_moment(fire["since"]),
        dropped=_drops(session, skipped),
    )


def write_slot(
    session: Session, opened: Mapping[str, object], after: int, until: int | None, breaker: int, now: int
) -> list[sqlite3.Row]:
    """Ledger rows and jobs of one opened slot, for the schedules of its spec with ids later than `after` and
    up to `until`; answers the rows."""
    which = {"spec_id": opened["spec_id"], "slot_at": opened["slot_at"]}
    last_job_id: int = session.row("reserve_ids")["id"]
    part = {**which, "last_id": after, "herd_end": until, "last_job_id": last_job_id}
    decided = session.rows(
        "write_ledger",
        **part,
        since=opened["since"],
        combined=opened["combined"],
        skip=opened["skip"],
        note=opened["note"],
        missed_after=span(LATE),
        breaker=breaker,
        now=now,
    )
    fired = [row["schedule_id"] for row in decided if row["job_id"] is not None]
    if fired:
        _replace(session, part, now)
        session.change(
            "fire", **part, previous_at=opened.get("previous_at"), missed_after=span(LATE), now=now
        )
        session.hint()
    counted = fired
    if len(fired) < len(decided):
        counted = fired + [row["schedule_id"] for row in decided if row["reason"] == Skipped.REQUESTED]
    session.change("count_down", ids=listed(counted), combined=opened["combined"])
    return decided


def _drops(session: Session, skipped: Sequence[sqlite3.Row]) -> tuple[Drop, ...]:
    reasons = {row["schedule_id"]: Skipped(row["reason"]) for row in skipped if row["reason"] in DROPPED}
    if not reasons:
        return ()
    found = session.rows("names_of", ids=listed(reasons))
    return tuple(Drop(schedule=row["name"], reason=reasons[row["id"]]) for row in found)


def _replace(session: Session, part: dict[str, object], now: int) -> None:
    """Cancel what the jobs about to be made take the place of."""
    if replaced := [
        row["id"] for row in session.rows("replaced_jobs", **part, missed_after=span(LATE), now=now)
    ]:
        session.rows("cancel_jobs", ids=listed(replaced), now=now)
