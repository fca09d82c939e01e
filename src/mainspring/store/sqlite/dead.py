"""Dead letters on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.failure import Failure
from mainspring.model.job import JobName
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, noted


class SQLiteDeadLetters:
    """DeadLetters on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def replay(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        def work(session: Session) -> list[int]:
            back = {
                row["id"] for row in session.rows("replay_dead", ids=listed(job_ids), now=session.now(at))
            }
            if back:
                session.rows("purge_dead", ids=listed(back))
                session.hint()
            return [job_id for job_id in job_ids if job_id in back]

        return await self._database.write(work)

    async def edit_dead(
        self, job_id: int, *, payload: bytes, expected: bytes, note: Failure, at: Stamp
    ) -> bool:
        def work(session: Session) -> bool:
            now = session.now(at)
            which = {"id": job_id, "expected": expected}
            session.change("note_edit", **which, error=noted(note, now), now=now)
            return bool(session.change("edit_dead", **which, payload=payload))

        return await self._database.write(work)

    async def dead_names(self, job_ids: Sequence[int]) -> list[JobName]:
        def work(session: Session) -> list[JobName]:
            found = session.rows("dead_names", job_ids=listed(job_ids))
            return [JobName(job_id=row["id"], task=row["task"], queue=row["queue"]) for row in found]

        return await self._database.read(work)

    async def purge(self, job_ids: Sequence[int]) -> int:
        return await self._database.write(
            lambda session: len(session.rows("purge_dead", ids=listed(job_ids)))
        )
