"""The read side on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.history import DeadFilter, DeadGroup, DeadJob, Standing
from mainspring.model.job import Job, JobState
from mainspring.store.ports import Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros


class SQLiteHistory:
    """HistoryStore on SQLite, but for `members`, which the fleet answers, and what comes in pages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def job(self, job_id: int, *, at: Stamp) -> Job | None:
        return await self._database.read(lambda session: find_job(session, job_id, session.now(at)))

    async def states(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, JobState]:
        def work(session: Session) -> dict[int, JobState]:
            found = session.rows("job_states", ids=listed(job_ids), now=session.now(at))
            return {row["id"]: JobState(row["state"]) for row in found}

        return await self._database.read(work)

    async def standings(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, Standing]:
        def work(session: Session) -> dict[int, Standing]:
            found = session.rows("standings", ids=listed(job_ids), now=session.now(at))
            return {row["id"]: rows.standing(row) for row in found}

        return await self._database.read(work)

    async def dead(self, which: DeadFilter) -> list[DeadJob]:
        def work(session: Session) -> list[DeadJob]:
            found = session.rows("dead_jobs", **_filter(which), **_dead_params(which))
            return [rows.dead_job(row) for row in found]

        return await self._database.read(work)

    async def count_dead(self, which: DeadFilter) -> int:
        def work(session: Session) -> int:
            count: int = session.row("count_dead", **_filter(which), **_dead_params(which))["letters"]
            return count

        return await self._database.read(work)

    async def dead_groups(self, which: DeadFilter) -> list[DeadGroup]:
        def work(session: Session) -> list[DeadGroup]:
            found = session.rows("dead_groups", **_filter(which), **_dead_params(which))
            return [rows.dead_group(row) for row in found]

        return await self._database.read(work)


def find_job(session: Session, job_id: int, now: int) -> Job | None:
    """One job, wherever it stands."""
    if found := session.rows("live_job", id=job_id, now=now):
        return rows.live_job(found[0])
    if found := session.rows("dead_job", id=job_id):
        return rows.dead_job(found[0]).as_job()
    if found := session.rows("ended_job", id=job_id):
        return rows.ended_job(found[0])
    return None


def _filter(which: DeadFilter) -> dict[str, object]:
    return {"task": which.task, "queue": which.queue, "before": which.before, "limit": which.limit}


def _dead_params(which: DeadFilter) -> dict[str, object]:
    return {
        "ids": None if which.ids is None else listed(which.ids),
        "reason": which.reason,
        "error": which.error,
        "text": which.text,
        "died_from": micros(which.died_from),
        "died_before": micros(which.died_before),
    }
