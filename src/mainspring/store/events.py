"""Events, and the jobs that wait for them.

A job begins to wait when it is settled as SNOOZED with `awaits`. On PostgreSQL, the sender of an event and a
job that begins to wait for it lock the same row of `events`, so that one of the two transactions sees the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.model.checkpoint import EVERYBODY, Event
from mainspring.store.audit_log import carried_out
from mainspring.store.database import Database, Stamp, Transaction, reads


class Events:
    """Events that jobs wait for."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, event: Event, *, at: Stamp) -> bool:
        """Write an event, and make the jobs due that wait for it. False, and nothing changes, when an event
        of that name for the same job, or for all jobs, exists already. The event is durable on return. A job
        that begins to wait meanwhile is made due, or its settlement finds the event."""

        async def work(tx: Transaction) -> bool:
            place = {"job_id": event.job_id, "name": event.name}
            if not await tx.fetch("send_event", **place, payload=event.payload, at=at):
                return False
            if event.job_id == EVERYBODY:
                rows = await tx.fetch("waits", name=event.name)
            else:
                rows = await tx.fetch("own_wait", **place)
            # In the order in which all transactions lock jobs.
            waits = sorted(({"job_id": row["job_id"], "fence": row["fence"]} for row in rows), key=_job_id)
            await tx.each("wake_jobs", waits, at=at)
            await tx.each("drop_waits", waits)
            if waits:
                tx.hint(earlier=True)
            return True

        return await carried_out(self._database, "send_event", work)

    @reads
    async def get(self, job_id: int, name: str) -> bytes | None:
        """The payload of the event for this job, or else for all jobs; None without an event."""
        found = await self._database.fetch("event", job_id=job_id, name=name)
        return found[0]["payload"] if found else None

    @reads
    async def awaited(self, job_ids: Sequence[int]) -> dict[int, str]:
        """The event that each of these jobs waits for; jobs that wait for no event are left out."""
        found = await self._database.fetch("awaited", ids=list(job_ids))
        return {row["job_id"]: row["name"] for row in found}

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete older events of jobs that are not on record any more, older events for all jobs, and waits
        that have ended, `limit` rows at a time; answer how many were deleted."""
        gone = after = 0
        while page := await self._database.fetch("old_events", after=after, before=before, limit=limit):
            ids = [row["job_id"] for row in page]
            known = [row["id"] for row in await self._database.fetch("known_ids", ids=ids)]
            gone += len(await self._database.fetch("prune_events", job_ids=ids, known=known))
            after = ids[-1]
        while count := len(await self._database.fetch("prune_common_events", before=before, limit=limit)):
            gone += count
        return gone + await self._prune_waits(limit)

    async def _prune_waits(self, limit: int) -> int:
        gone = after = 0
        while page := await self._database.fetch("old_waits", after=after, limit=limit):
            over = [{"job_id": row["job_id"], "fence": row["fence"]} for row in page if not row["stands"]]
            await self._database.each("drop_waits", over)
            gone += len(over)
            after = page[-1]["job_id"]
        return gone


def _job_id(wait: dict[str, int]) -> int:
    return wait["job_id"]
