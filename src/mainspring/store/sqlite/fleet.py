"""Leases of processes on SQLite."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from mainspring.lifecycle.burial import WORKER_LOST, is_too_many
from mainspring.model.fleet import LONGEST_LEASE, WATCH_GAP, Beat, Member, MemberInfo, Reaped, Watch
from mainspring.store.ports import Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, moment, noted, span

MOST_HOLDING = 1000


class SQLiteFleet:
    """FleetStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, member: Member, *, lease: timedelta, at: Stamp) -> None:
        def work(session: Session) -> None:
            session.change(
                "join_fleet",
                id=member.id,
                role=member.role,
                name=member.name,
                queues=listed(member.queues),
                tasks=listed(member.tasks),
                version=member.version,
                tzdata=member.tzdata,
                lease=span(lease),
                now=session.now(at),
            )

        await self._database.write(work)

    async def beat(
        self,
        member_id: int,
        *,
        lease: timedelta,
        claims: Sequence[tuple[int, int]],
        told: datetime | None = None,
        at: Stamp,
    ) -> Beat:
        def work(session: Session) -> Beat:
            alive = session.change(
                "beat",
                id=member_id,
                lease=span(lease),
                holding=listed(job_id for job_id, _ in claims[:MOST_HOLDING]),
                told=micros(told),
                now=session.now(at),
            )
            lost = session.rows("lost_claims", id=member_id, claims=listed(claims)) if claims else []
            return Beat(alive=bool(alive), lost=tuple(row["job_id"] for row in lost))

        return await self._database.write(work, durable=False)

    async def leave(self, member_id: int, *, clean: bool, at: Stamp) -> None:
        def work(session: Session) -> None:
            session.change("leave_clean" if clean else "leave_claims", id=member_id)

        await self._database.write(work)

    async def is_down(self) -> bool:
        return await self._database.is_down()

    async def reap(self, *, limit: int, watch: Watch | None = None, at: Stamp) -> Reaped:
        def work(session: Session) -> Reaped:
            now = session.now(at)
            since, last = (None, None) if watch is None else (micros(watch.since), micros(watch.last))
            judged = session.rows(
                "bury_members",
                since=since,
                last=last,
                gap=span(WATCH_GAP),
                longest=span(LONGEST_LEASE),
                now=now,
            )
            buried = [row for row in judged if row["dead"]]
            session.each("note_lost", [dict(row) | {"now": now} for row in buried])
            ended = session.row("dead_members", now=now)
            told: dict[str, Any] = {} if watch is None else {"at": moment(now), "late": bool(ended["late"])}
            if not ended["dead"]:
                return Reaped(**told)
            lost = session.rows("lost_jobs", limit=limit)
            dead = sorted(row["id"] for row in lost if row["begun"] and is_too_many(row["crashes"] + 1))
            if lost:
                ids = listed(row["id"] for row in lost)
                session.change("reap_jobs", ids=ids, now=now)
                _bury(session, dead, now)
                session.change("give_back_jobs", ids=ids)
                session.hint()
            else:
                session.change("forget_members")
            members = tuple(row["name"] for row in buried)
            return Reaped(members=members, jobs=len(lost), buried=tuple(dead), **told)

        return await self._database.write(work, durable=False)

    async def mourn(self, *, at: Stamp) -> int:
        def work(session: Session) -> int:
            return len(session.rows("mourn_strangers", now=session.now(at)))

        return await self._database.write(work, durable=False)

    async def members(self, *, at: Stamp) -> list[MemberInfo]:
        def work(session: Session) -> list[MemberInfo]:
            return [rows.member(row) for row in session.rows("members", now=session.now(at))]

        return await self._database.read(work)


def _bury(session: Session, job_ids: list[int], now: int) -> None:
    """Jobs that have crashed too often; those left behind in the queue are given back."""
    if job_ids:
        session.change("bury_jobs", ids=listed(job_ids), error=noted(WORKER_LOST, now), now=now)
        session.change("remove_jobs", ids=listed(job_ids))
