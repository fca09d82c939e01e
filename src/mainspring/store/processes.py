"""Processes and their leases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.model.process import LONGEST_LEASE, WATCH_GAP, Beat, NewProcess, ProcessInfo, Reaped, Watch
from mainspring.rules.settle import CRASHES_ALLOWED, WORKER_LOST
from mainspring.store.database import Database, Stamp, reads
from mainspring.store.rows import moment, reader, written

_info = reader(ProcessInfo)
_MOST_HOLDING = 1000
"""Jobs of one process that are put on record with its heartbeat."""


class Processes:
    """Leases of processes. Heartbeats and what the reaper does may be lost in a database crash: then a lease
    ends early, or a process is found dead once more."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, process: NewProcess, *, lease: timedelta, at: Stamp) -> None:
        """Enter a process start, alive until now + lease."""
        await self._database.fetch(
            "join_fleet",
            id=process.id,
            role=process.role,
            name=process.name,
            queues=list(process.queues),
            tasks=list(process.tasks),
            version=process.version,
            tzdata=process.tzdata,
            lease=lease,
            at=at,
        )

    async def beat(
        self,
        process_id: int,
        *,
        lease: timedelta,
        claims: Sequence[tuple[int, int]],
        told: datetime | None = None,
        at: Stamp,
    ) -> Beat:
        """Renew the lease unless the process is on record as dead, and say which of the (job, fence) pairs
        are no longer its claims. A lease that has ended is renewed, too: until the reaper has come, no other
        process was given these jobs. The jobs are put on record, and the difference between the process's
        own clock, which says `told`, and the store's."""
        job_ids = [job_id for job_id, _ in claims]
        alive = await self._database.relaxed(
            "beat", id=process_id, lease=lease, holding=job_ids[:_MOST_HOLDING], told=told, at=at
        )
        held = await self._database.relaxed("held_claims", id=process_id, ids=job_ids) if claims else []
        kept = {(row["id"], row["fence"]) for row in held}
        return Beat(alive=bool(alive), lost=tuple(claim[0] for claim in claims if tuple(claim) not in kept))

    async def leave(self, process_id: int, *, clean: bool, at: Stamp) -> None:
        """End the lease now. `clean` promises that no claim is left under it."""
        await self._database.fetch("leave_clean" if clean else "leave_claims", id=process_id)

    async def reap(self, *, limit: int, watch: Watch | None = None, at: Stamp) -> Reaped:
        """Give back the claims of processes whose lease has ended, at most `limit` jobs a pass. With a
        `watch`, only of those that could have renewed it while the watch lasted: for as long as their lease
        lasts. A lease that ends later than it could if it were renewed now is cut to that.

        A claim given back is no failure of its job. It is a crash of a job whose run is on record as begun,
        and one that has crashed too often is a dead letter with reason `crashed`; any other becomes an
        orphaned job, if it is not one. Finding the dead, giving back and forgetting are transactions of their
        own: any reaper goes on where one died."""
        dead = await self._database.relaxed(
            "end_processes",
            since=watch and watch.since,
            last=watch and watch.last,
            gap=WATCH_GAP,
            longest=LONGEST_LEASE,
            at=at,
        )
        [ended] = await self._database.fetch("dead_processes", at=at)
        told = Reaped() if watch is None else Reaped(at=moment(ended["at"]), late=bool(ended["late"]))
        if not ended["dead"]:
            return told
        jobs = await self._database.relaxed(
            "reap_jobs", limit=limit, crashes_allowed=CRASHES_ALLOWED, error=written(WORKER_LOST), at=at
        )
        if jobs:
            self._database.hint()
        else:
            await self._database.relaxed("forget_processes")
        return Reaped(
            at=told.at,
            late=told.late,
            processes=tuple(row["name"] for row in dead),
            jobs=len(jobs),
            buried=tuple(sorted(row["id"] for row in jobs if row["buried"])),
        )

    async def mark_orphans_dead(self, *, at: Stamp) -> int:
        """Put on record, as dead, processes that hold claims but have no row, so that the next `reap` gives
        their claims back. There should be none: this is for a clean leave that was not clean. Answers how
        many there were."""
        return len(await self._database.relaxed("mark_orphans_dead", at=at))

    @reads
    async def all(self, *, at: Stamp) -> list[ProcessInfo]:
        """Every process on record, alive or not, those that started first before the others."""
        return [_info(row) for row in await self._database.fetch("processes", at=at)]
