"""Pages of long lists on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence

import msgspec

from mainspring.model.history import JobFilter
from mainspring.model.job import LIVE_STATES, Job, JobState
from mainspring.model.pages import JobPage
from mainspring.store.codes import FINAL_CODE
from mainspring.store.paging import LOOK, NEWEST, Found, finished, found, gathered, live, matches, merged
from mainspring.store.ports import Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.history import SQLiteHistory, find_job
from mainspring.store.sqlite.rows import listed, micros

SAME_NAME = 5

_ids = msgspec.json.Decoder(tuple[int, ...])
Params = dict[str, object]
Read = Callable[[sqlite3.Row], Job]


class SQLitePages(SQLiteHistory):
    """PageStore on SQLite, and what history answers by pages."""

    async def jobs(self, which: JobFilter, *, at: Stamp) -> list[Job]:
        return await gathered(lambda page: self.jobs_page(page, at=at), which)

    async def jobs_page(self, which: JobFilter, *, at: Stamp) -> JobPage:
        def work(session: Session) -> JobPage:
            now = session.now(at)
            if which.key is not None:
                holders = session.rows("jobs_of_key", name=which.key, limit=which.limit)
                jobs = [find_job(session, row["job_id"], now) for row in holders]
                return merged([_those([job for job in jobs if job is not None], which)], which.limit)
            if which.worker is not None:
                held = [
                    job_id
                    for row in session.rows("holding", id=which.worker)
                    for job_id in _ids.decode(row["holding"])
                ]
                return merged(
                    [_those(_by_id(session, held, which, now), which, worker=which.worker)], which.limit
                )
            if which.schedule is None:
                return merged(_sources(session, which, None, now), which.limit)
            owners = session.rows("schedule_ids", name=which.schedule, limit=SAME_NAME)
            parts = [part for row in owners for part in _sources(session, which, row["id"], now)]
            return merged(parts, which.limit)

        return await self._database.read(work)


def _sources(session: Session, which: JobFilter, schedule_id: int | None, now: int) -> list[Found]:
    """What is in the queue comes first: a job that was replayed is what it is now."""
    sources = []
    if states := live(which):
        sources.append(_live(session, which, states, schedule_id, now))
    if JobState.DEAD in which.wanted:
        sources.append(_page(session, "dead_page", which, _dead, schedule_id=schedule_id))
    if verdicts := [FINAL_CODE[state] for state in finished(which)]:
        own = {"verdicts": listed(verdicts), "schedule_id": schedule_id}
        sources.append(_page(session, "ended_page", which, rows.ended_job, **own))
    return sources


def _live(
    session: Session, which: JobFilter, states: Sequence[JobState], schedule_id: int | None, now: int
) -> Found:
    before = which.before or NEWEST
    if schedule_id is not None:
        own = session.rows("live_of_schedule", schedule_id=schedule_id, before=before, look=LOOK, now=now)
        return _those([rows.live_job(row) for row in own], which)
    if states == (JobState.RUNNING,):
        running = [row["id"] for row in session.rows("running_ids", before=before, look=LOOK)]
        return _those(_by_id(session, running, which, now), which)
    wanted = None if len(states) == len(LIVE_STATES) else listed(states)
    return _page(session, "live_page", which, rows.live_job, states=wanted, now=now)


def _page(session: Session, statement: str, which: JobFilter, read: Read, **more: object) -> Found:
    params: Params = {
        "task": which.task,
        "queue": which.queue,
        "since": micros(which.since),
        "until": micros(which.until),
        "before": which.before or NEWEST,
        "limit": which.limit + 1,
    }
    page = session.rows(statement, **params, **more, look=LOOK)
    frontier = None
    if page and page[-1]["place"] == LOOK:
        frontier = page[-1]["job_id"] if "job_id" in page[-1].keys() else page[-1]["id"]  # noqa: SIM118 - a row, no dict
    return found([read(row) for row in page if row["fits"]], which.limit, frontier)


def _by_id(session: Session, ids: Sequence[int], which: JobFilter, now: int) -> list[Job]:
    below = which.before or NEWEST
    page = session.rows("live_by_id", ids=listed(each for each in ids if each < below), now=now)
    return [rows.live_job(row) for row in page]


def _those(jobs: Sequence[Job], which: JobFilter, *, worker: int | None = None) -> Found:
    """Of jobs that are all there are, newest first, those that fit."""
    fitting = [job for job in jobs if matches(job, which) and worker in (None, job.worker_id)]
    return found(fitting, which.limit, None)


def _dead(row: sqlite3.Row) -> Job:
    return rows.dead_job(row).as_job()
