"""Events on SQLite, where one transaction writes at a time: nobody sends while somebody begins to wait."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mainspring.model.event import EVERYBODY, Event
from mainspring.model.settlement import Settlement
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed


class SQLiteEvents:
    """EventStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send_event(self, event: Event, *, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            now = session.now(at)
            place = {"job_id": event.job_id, "name": event.name}
            if not session.rows("send_event", **place, payload=event.payload, now=now):
                return False
            own = event.job_id != EVERYBODY
            rows = session.rows("own_wait", **place) if own else session.rows("waits", name=event.name)
            waits = [{"job_id": row["job_id"], "fence": row["fence"], "now": now} for row in rows]
            session.each("wake_jobs", waits)
            session.each("drop_waits", waits)
            if waits:
                session.hint()
            return True

        return await self._database.write(work)

    async def event(self, job_id: int, name: str) -> bytes | None:
        found = await self._database.read(lambda session: session.rows("event", job_id=job_id, name=name))
        return found[0]["payload"] if found else None

    async def awaited(self, job_ids: Sequence[int]) -> dict[int, str]:
        found = await self._database.read(lambda session: session.rows("awaited", ids=listed(job_ids)))
        return {row["job_id"]: row["name"] for row in found}


def begin_waits(session: Session, settlements: Sequence[Settlement]) -> set[int]:
    """Put on record that these jobs wait, in the transaction that settles them; answer which need not, for
    their event has come."""
    found = {s.job_id for s in settlements if session.rows("event", job_id=s.job_id, name=s.awaits)}
    waits = [s for s in settlements if s.job_id not in found]
    session.each("put_waits", [{"job_id": s.job_id, "name": s.awaits, "fence": s.fence} for s in waits])
    return found


async def prune_events(database: Database, before: int, *, limit: int) -> int:
    """Drop what nobody can wait for any more, and waits that have ended; answer how many rows went."""
    gone = after = 0
    old = partial(Session.rows, statement="old_events", before=before, limit=limit)
    while page := await database.read(partial(old, after=after)):
        ids = [row["job_id"] for row in page]
        gone += await database.write(partial(Session.change, statement="prune_events", job_ids=listed(ids)))
        after = ids[-1]
    common = partial(Session.change, statement="prune_common_events", before=before, limit=limit)
    while count := await database.write(common):
        gone += count
    return gone + await _prune_waits(database, limit)


async def _prune_waits(database: Database, limit: int) -> int:
    gone = after = 0
    while page := await database.read(partial(Session.rows, statement="old_waits", after=after, limit=limit)):
        over = [{"job_id": row["job_id"], "fence": row["fence"]} for row in page if not row["stands"]]
        if over:
            await database.write(partial(Session.each, statement="drop_waits", batch=over))
        gone += len(over)
        after = page[-1]["job_id"]
    return gone
