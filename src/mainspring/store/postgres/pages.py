"""Pages of long lists on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mainspring.model.history import JobFilter
from mainspring.model.job import LIVE_STATES, Job, JobState
from mainspring.model.pages import JobPage
from mainspring.store.codes import FINAL_CODE
from mainspring.store.paging import LOOK, NEWEST, Found, finished, found, gathered, live, matches, merged
from mainspring.store.ports import Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.history import PostgresHistory
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

SAME_NAME = 5
"""Schedules of one name, all but one of them deleted, whose jobs are listed."""

Params = dict[str, object]
Read = Callable[["Record", Names], Job]


class PostgresPages(PostgresHistory):
    """PageStore on PostgreSQL, and what history answers by pages."""

    async def jobs(self, which: JobFilter, *, at: Stamp) -> list[Job]:
        return await gathered(lambda page: self.jobs_page(page, at=at), which)

    async def jobs_page(self, which: JobFilter, *, at: Stamp) -> JobPage:
        if which.key is not None:
            return await self._of_key(which, which.key, at)
        params = await self._named(which)
        if params is None:
            return JobPage(jobs=())
        if which.worker is not None:
            held = await self._database.fetch("holding", id=which.worker)
            running = await self._by_id([job_id for row in held for job_id in row["holding"]], which, at)
            return merged([_those(running, which, worker=which.worker)], which.limit)
        if which.schedule is None:
            sources = await self._sources(which, params, None, at)
        else:
            found = await self._database.fetch("schedule_ids", name=which.schedule, limit=SAME_NAME)
            sources = [part for row in found for part in await self._sources(which, params, row["id"], at)]
        return merged(sources, which.limit)

    async def _sources(
        self, which: JobFilter, params: Params, schedule_id: int | None, at: Stamp
    ) -> list[Found]:
        """What is in the queue comes first: a job that was replayed is what it is now."""
        sources = []
        if states := live(which):
            sources.append(await self._live(which, params, states, schedule_id, at))
        if JobState.DEAD in which.wanted:
            sources.append(await self._page("dead_page", which, params, _dead, schedule_id=schedule_id))
        verdicts = [FINAL_CODE[state] for state in finished(which)]
        if schedule_id is not None and verdicts:
            own = {"schedule_id": schedule_id, "verdicts": verdicts}
            sources.append(await self._page("ended_of_schedule", which, params, rows.ended_job, **own))
        elif FINAL_CODE[JobState.SUCCEEDED] in verdicts:
            statement = "ended_page" if params["task_id"] is None else "ended_of_task"
            sources.append(await self._page(statement, which, params, rows.ended_job, verdicts=verdicts))
        else:
            sources += [
                await self._page("ended_unusually", which, params, rows.ended_job, verdict=verdict)
                for verdict in verdicts
            ]
        return sources

    async def _live(
        self,
        which: JobFilter,
        params: Params,
        states: Sequence[JobState],
        schedule_id: int | None,
        at: Stamp,
    ) -> Found:
        if schedule_id is not None:
            own = await self._fetch(
                "live_of_schedule", schedule_id=schedule_id, before=params["before"], look=LOOK, at=at
            )
            return _those([rows.live_job(row, self._names) for row in own], which)
        if states == (JobState.RUNNING,):
            [row] = await self._database.fetch("running_ids", **params, look=LOOK, at=at)
            return _those(await self._by_id(row["ids"] or (), which, at), which)
        wanted = None if len(states) == len(LIVE_STATES) else list(states)
        return await self._page("live_page", which, params, rows.live_job, states=wanted, at=at)

    async def _page(
        self, statement: str, which: JobFilter, params: Params, read: Read, **more: object
    ) -> Found:
        page = await self._fetch(statement, **params, **more, look=LOOK)
        frontier = None
        if page and page[-1]["place"] == LOOK:
            frontier = page[-1]["job_id"] if "job_id" in page[-1] else page[-1]["id"]
        fitting = [read(row, self._names) for row in page if row["fits"]]
        return found(fitting, which.limit, frontier)

    async def _of_key(self, which: JobFilter, name: str, at: Stamp) -> JobPage:
        holders = await self._database.fetch("jobs_of_key", name=name, limit=which.limit)
        jobs = [await self.job(row["job_id"], at=at) for row in holders]
        return merged([_those([job for job in jobs if job is not None], which)], which.limit)

    async def _by_id(self, ids: Sequence[int], which: JobFilter, at: Stamp) -> list[Job]:
        below = which.before or NEWEST
        page = await self._fetch("live_by_id", ids=sorted(each for each in ids if each < below), at=at)
        return [rows.live_job(row, self._names) for row in page]

    async def _named(self, which: JobFilter) -> Params | None:
        """None when it names a queue or task that has never been seen: nothing can match."""
        await self._names.refresh()
        task_id, queue_id = self._names.known_task(which.task), self._names.known_queue(which.queue)
        if (which.task and task_id is None) or (which.queue and queue_id is None):
            return None
        return {
            "task_id": task_id,
            "queue_id": queue_id,
            "since": which.since,
            "until": which.until,
            "before": which.before or NEWEST,
            "limit": which.limit + 1,
        }


def _those(jobs: Sequence[Job], which: JobFilter, *, worker: int | None = None) -> Found:
    """Of jobs that are all there are, newest first, those that fit."""
    fitting = [job for job in jobs if matches(job, which) and worker in (None, job.worker_id)]
    return found(fitting, which.limit, None)


def _dead(row: Record, names: Names) -> Job:
    return rows.dead_job(row, names).as_job()
