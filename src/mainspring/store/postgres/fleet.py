"""Leases of processes on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.lifecycle.burial import CRASHES_ALLOWED, WORKER_LOST
from mainspring.model.fleet import LONGEST_LEASE, WATCH_GAP, Beat, Member, MemberInfo, Reaped, Watch
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.wake import Notifier


class PostgresFleet:
    """FleetStore on PostgreSQL."""

    def __init__(self, database: Database, notifier: Notifier) -> None:
        self._database = database
        self._notifier = notifier

    async def join(self, member: Member, *, lease: timedelta, at: Stamp) -> None:
        await self._database.fetch(
            "join_fleet",
            id=member.id,
            role=member.role,
            name=member.name,
            queues=list(member.queues),
            tasks=list(member.tasks),
            version=member.version,
            tzdata=member.tzdata,
            lease=lease,
            at=at,
        )

    async def beat(
        self,
        member_id: int,
        *,
        lease: timedelta,
        claims: Sequence[tuple[int, int]],
        told: datetime | None = None,
        at: Stamp,
    ) -> Beat:
        [row] = await self._database.relaxed(
            "beat",
            id=member_id,
            lease=lease,
            job_ids=[job_id for job_id, _ in claims],
            fences=[fence for _, fence in claims],
            told=told,
            at=at,
        )
        return Beat(alive=row["alive"], lost=tuple(row["lost"]))

    async def leave(self, member_id: int, *, clean: bool, at: Stamp) -> None:
        await self._database.fetch("leave_clean" if clean else "leave_claims", id=member_id)

    async def is_down(self) -> bool:
        return await self._database.is_down()

    async def reap(self, *, limit: int, watch: Watch | None = None, at: Stamp) -> Reaped:
        buried = await self._database.relaxed(
            "bury_members",
            since=watch and watch.since,
            last=watch and watch.last,
            gap=WATCH_GAP,
            longest=LONGEST_LEASE,
            at=at,
        )
        [ended] = await self._database.relaxed("dead_members", at=at)
        told = {} if watch is None else {"at": ended["at"], "late": ended["late"]}
        if not ended["dead"]:
            return Reaped(**told)
        [row] = await self._database.relaxed(
            "reap_jobs", limit=limit, crashes_allowed=CRASHES_ALLOWED, error=rows.written(WORKER_LOST), at=at
        )
        if row["jobs"]:
            self._notifier.poke()
        else:
            await self._database.relaxed("forget_members")
        members = tuple(each["name"] for each in buried)
        return Reaped(members=members, jobs=row["jobs"], buried=tuple(row["buried"] or ()), **told)

    async def mourn(self, *, at: Stamp) -> int:
        return len(await self._database.relaxed("mourn_strangers", at=at))

    async def members(self, *, at: Stamp) -> list[MemberInfo]:
        return [rows.member(row) for row in await self._database.fetch("members", at=at)]
