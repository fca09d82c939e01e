"""Processes: their leases, their heartbeats and their claims."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.model.process import LONGEST_LEASE, WATCH_GAP, Beat, NewProcess, ProcessInfo, Reaped, Watch
from mainspring.rules.settle import CRASHES_ALLOWED, WORKER_LOST
from mainspring.store.database import Database, Stamp, reads
from mainspring.store.rows import moment, reader, written

_info = reader(ProcessInfo)
_MOST_HOLDING = 1000
"""The number of jobs that a heartbeat records, at most."""


class Processes:
    """Leases of processes. A heartbeat and a pass of the reaper may be lost in a crash of the database: then
    a lease ends early, or a process is found dead a second time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, process: NewProcess, *, lease: timedelta, at: Stamp) -> None:
        """Record the start of a process, which is alive until now + lease."""
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
        """Renew the lease unless the process is on record as dead, and answer which of the (job, fence) pairs
        are not its claims any more. A lease that has ended is renewed too: no other process has these jobs
        until the reaper has run. The heartbeat records the jobs, and the difference between the clock of the
        process (`told`) and the clock of the store."""
        job_ids = [job_id for job_id, _ in claims]
        alive = await self._database.relaxed(
            "beat", id=process_id, lease=lease, holding=job_ids[:_MOST_HOLDING], told=told, at=at
        )
        held = await self._database.relaxed("held_claims", id=process_id, ids=job_ids) if claims else []
        kept = {(row["id"], row["fence"]) for row in held}
        return Beat(alive=bool(alive), lost=tuple(claim[0] for claim in claims if tuple(claim) not in kept))

    async def leave(self, process_id: int, *, clean: bool, at: Stamp) -> None:
        """End the lease now. `clean` promises that the process has no claim left."""
        await self._database.fetch("leave_clean" if clean else "leave_claims", id=process_id)

    async def reap(self, *, limit: int, watch: Watch | None = None, at: Stamp) -> Reaped:
        """Give back the claims of processes whose lease has ended, at most `limit` jobs in a pass. With a
        `watch`, only claims of processes that could have renewed their lease during the watch: the watch has
        lasted as long as their lease. A lease that ends later than a renewal of now would end is shortened to
        that moment.

        A claim that is given back is not a failure of its job. If it is on record that the run had begun, it
        is a crash of the job, and a job with too many crashes becomes a dead letter with reason `crashed`.
        Any other job becomes an orphaned job. The reaper finds dead processes, gives back claims and deletes
        processes in separate transactions: if a reaper dies, any other reaper goes on."""
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
        """Record, as dead, processes that hold claims but have no row, so that the next `reap` gives their
        claims back. There should be no such process: it is a process that left as `clean` and still had
        claims. The answer is the number of these processes."""
        return len(await self._database.relaxed("mark_orphans_dead", at=at))

    @reads
    async def all(self, *, at: Stamp) -> list[ProcessInfo]:
        """Every process on record, alive or not, in the order of their starts."""
        return [_info(row) for row in await self._database.fetch("processes", at=at)]
