"""Events on PostgreSQL: those who send and those who begin to wait meet at a row that both lock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.event import EVERYBODY, Event
from mainspring.model.settlement import Settlement
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.hints import Hints
from mainspring.store.postgres.wake import Notifier

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

Fetch = Callable[..., Awaitable["list[Record]"]]


class PostgresEvents:
    """EventStore on PostgreSQL."""

    def __init__(self, database: Database, hints: Hints, notifier: Notifier) -> None:
        self._database, self._hints, self._notifier = database, hints, notifier

    async def send_event(self, event: Event, *, at: Stamp) -> bool:
        place = {"job_id": event.job_id, "name": event.name}
        async with self._database.transaction("send_event") as transaction:
            if not await transaction.fetch("send_event", **place, payload=event.payload, at=at):
                return False
            if event.job_id == EVERYBODY:
                waits = await transaction.fetch("waits", name=event.name)
            else:
                waits = await transaction.fetch("own_wait", **place)
            if waits:
                waits.sort(key=lambda row: int(row["job_id"]))
                which = {"ids": [row["job_id"] for row in waits], "fences": [row["fence"] for row in waits]}
                await transaction.fetch("wake_jobs", **which, at=at)
                await transaction.fetch("drop_waits", **which)
        if waits:
            self._hints.put_back()
            self._notifier.poke()
        return True

    async def event(self, job_id: int, name: str) -> bytes | None:
        found = await self._database.fetch("event", job_id=job_id, name=name)
        return found[0]["payload"] if found else None

    async def awaited(self, job_ids: Sequence[int]) -> dict[int, str]:
        found = await self._database.fetch("awaited", ids=list(job_ids))
        return {row["job_id"]: row["name"] for row in found}


async def meet(fetch: Fetch, settlements: Sequence[Settlement]) -> list[Settlement]:
    """The same settlements, inside the transaction that writes them: a job whose event has come does not
    wait for it, and whoever sends one that has not comes after us and finds our jobs waiting."""
    awaiting = [s for s in settlements if s.awaits is not None]
    places = sorted({(job_id, s.awaits or "") for s in awaiting for job_id in (EVERYBODY, s.job_id)})
    where = {"job_ids": [job_id for job_id, _ in places], "names": [name for _, name in places]}
    met: list[Record] = []
    while len(met) < len(places):  # one that was pruned in between is made anew
        await fetch("add_events", **where)
        met = await fetch("meet_events", **where)
    sent = {(row["job_id"], row["name"]) for row in met if row["sent"]}
    return [
        msgspec.structs.replace(s, delay=timedelta(), awaits=None)
        if sent & {(EVERYBODY, s.awaits), (s.job_id, s.awaits)}
        else s
        for s in settlements
    ]


async def put_waits(fetch: Fetch, settlements: Sequence[Settlement], settled: set[int]) -> None:
    """Those that were settled wait from now on."""
    waits = [s for s in settlements if s.awaits is not None and s.job_id in settled]
    await fetch(
        "put_waits",
        job_ids=[s.job_id for s in waits],
        names=[s.awaits for s in waits],
        fences=[s.fence for s in waits],
    )


async def prune_events(database: Database, before: datetime, *, limit: int) -> int:
    """Drop what nobody can wait for any more, and waits that have ended; answer how many rows went."""
    gone = after = 0
    while page := await database.fetch("old_events", after=after, before=before, limit=limit):
        ids = [row["job_id"] for row in page]
        known = [row["id"] for row in await database.fetch("known_ids", ids=ids)]
        gone += len(await database.fetch("prune_events", job_ids=ids, known=known))
        after = ids[-1]
    while count := len(await database.fetch("prune_common_events", before=before, limit=limit)):
        gone += count
    return gone + await _prune_waits(database, limit)


async def _prune_waits(database: Database, limit: int) -> int:
    gone = after = 0
    while page := await database.fetch("old_waits", after=after, limit=limit):
        over = [row for row in page if not row["stands"]]
        ids, fences = [row["job_id"] for row in over], [row["fence"] for row in over]
        gone += len(await database.fetch("drop_waits", ids=ids, fences=fences)) if over else 0
        after = page[-1]["job_id"]
    return gone
