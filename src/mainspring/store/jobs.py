"""Jobs: single jobs, pages of jobs and running jobs; and the orders on jobs.

A page is merged from several sources. Of each source a bounded part is read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from mainspring.model.job import (
    LIVE_STATES,
    CancelledJob,
    Failure,
    Job,
    JobEdit,
    JobFilter,
    JobPage,
    JobState,
    RunningJob,
    Standing,
)
from mainspring.model.value import Value
from mainspring.rules.settle import NEVER_BEGAN
from mainspring.store.audit_log import carried_out, carried_out_alone
from mainspring.store.codes import FINAL_CODE, FINAL_STATE, LIMITED
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.dead_letters import dead_job
from mainspring.store.limits import Places
from mainspring.store.rows import maybe_moment, moment, reader, written

SAME_NAME = 5
"""The number of schedules of one name whose jobs are listed, at most. All but one of them are deleted."""
LOOK_FOR_RUNNING = 2000
"""The number of jobs at the head of each priority level among which running jobs are searched."""
LOOK = 20_000
"""The number of rows of each source that one page reads, at most."""
NEWEST = 2**63 - 1
_failures = msgspec.json.Decoder(tuple[Failure, ...]).decode
_live_job = reader(
    Job,
    given=["finished_at", "result"],
    run_at=lambda row: moment(row["due_at"] or row["run_at"]),
    worker_id=lambda row: row["worker_id"] or None,
    waits_for_limit=lambda row: moment(row["run_at"]) == LIMITED,
    errors=lambda row: () if row["errors"] is None else _failures(row["errors"]),
)
_ended_job = reader(
    Job,
    given=["workflow_id", "waits_for_limit", "expires_at", "errors", "trace"],
    id=lambda row: row["job_id"],
    state=lambda row: FINAL_STATE[row["verdict"]],
    worker_id=lambda row: row["worker_id"] or None,
)
_standing = reader(
    Standing,
    worker_id=lambda row: row["worker_id"] or None,
    claimed_at=lambda row: maybe_moment(row["claimed_at"]) if row["worker_id"] else None,
)
_running_job = reader(
    RunningJob,
    attempt=lambda row: row["failures"] + 1,
    note=lambda row: row["note"] or "",
)


class _Holding(Value, frozen=True, kw_only=True):
    """Jobs that a process holds, by its last heartbeat."""

    holding: tuple[int, ...]


_holding = reader(_Holding)


class Jobs:
    """Jobs, live, dead or finished."""

    def __init__(self, database: Database, places: Places) -> None:
        self._database, self._places = database, places

    async def cancel(self, job_ids: Sequence[int], *, at: Stamp) -> list[CancelledJob]:
        """Remove live jobs from the queue. A running job loses its claim: its settlement will be refused, and
        the next heartbeat of its worker stops the run."""

        def read(rows: Sequence[Row]) -> list[CancelledJob]:
            was = {row["id"]: JobState(row["was"]) for row in rows}
            return [CancelledJob(job_id=job_id, was=was.get(job_id)) for job_id in job_ids]

        return await carried_out_alone(self._database, "cancel_jobs", read, ids=list(job_ids), at=at)

    async def run_now(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        """Make delayed jobs due now; answer the ids of these jobs."""
        rows = await self._database.fetch("run_jobs_now", ids=list(job_ids), at=at)
        if rows:
            self._database.hint(earlier=True)
        due = {row["id"] for row in rows}
        return [job_id for job_id in job_ids if job_id in due]

    async def retry(self, delayed: Sequence[int], dead: Sequence[int], *, at: Stamp) -> list[int]:
        """Make delayed jobs due now and put dead jobs back into their queues, as `run_now` and a replay do;
        answer the ids of these jobs."""

        async def work(tx: Transaction) -> list[int]:
            moved = [*await tx.fetch("run_jobs_now", ids=list(delayed), at=at)] if delayed else []
            moved += await tx.fetch("replay_dead", ids=list(dead), at=at) if dead else []
            if moved:
                tx.hint(earlier=True)
            return [row["id"] for row in moved]

        return await carried_out(self._database, "retry_jobs", work)

    async def reschedule(self, job_ids: Sequence[int], *, run_at: datetime, at: Stamp) -> list[int]:
        """Change the moment when waiting jobs are due; answer the ids of the changed jobs. A job with limits
        waits for its limits again, and gives back its places. A job that a worker holds, or whose deadline is
        earlier than the new moment, is not changed."""

        def read(rows: Sequence[Row]) -> list[int]:
            moved = {row["id"] for row in rows}
            return [job_id for job_id in job_ids if job_id in moved]

        moved = await carried_out_alone(
            self._database, "reschedule_jobs", read, ids=list(job_ids), run_at=run_at, at=at
        )
        if moved:
            self._database.hint(earlier=True)
        return moved

    async def edit(self, job: Job, edit: JobEdit, *, at: Stamp) -> bool:
        """Change a waiting job. False, and nothing changes, if the job is not as it was read: a worker has
        claimed the job, the job has ended, or its arguments were changed. A step of a workflow is not
        changed. The job keeps its unique key."""
        lines = [None] if edit.limit_keys is None else await self._places.lines([edit.limit_keys])
        if edit.queue is not None or edit.priority is not None:
            queue, priority = (
                edit.queue or job.queue,
                job.priority if edit.priority is None else edit.priority,
            )
            await self._places.priority_levels([(queue, job.task, priority)])

        async def work(tx: Transaction) -> bool:
            edited = await tx.fetch(
                "edit_job",
                id=job.id,
                fence=job.fence,
                expected=job.payload,
                payload=edit.payload,
                priority=edit.priority,
                queue=edit.queue,
                max_attempts=edit.max_attempts,
                keep_limit_set=edit.limit_keys is None,
                limit_set_id=lines[0],
                keep_deadline=not (edit.no_deadline or edit.expires or edit.expires_at),
                expires=edit.expires,
                expires_at=edit.expires_at,
            )
            if edited and edit.limit_keys is not None:
                # The places of its old limits. A job that waits for its limits again holds no place.
                await tx.fetch("drop_limit_holders", id=job.id)
            if edited:
                tx.hint(earlier=True)
            return bool(edited)

        return await carried_out(self._database, "edit_job", work)

    async def expire(self, *, limit: int, at: Stamp) -> list[int]:
        """Make dead letters, with reason `expired`, of jobs whose deadline has come and that no worker holds,
        at most `limit` in a pass; answer the ids of these jobs. Each job gets a run that never started. The
        pass may be lost in a crash of the database: then the next pass finds the jobs again."""
        rows = await self._database.relaxed("expire_jobs", limit=limit, error=written(NEVER_BEGAN), at=at)
        return sorted(row["id"] for row in rows)

    @reads
    async def get(self, job_id: int, *, at: Stamp) -> Job | None:
        """One job, live, dead or finished."""
        return await _job(self._database, job_id, at)

    @reads
    async def states(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, JobState]:
        """The state of each of these jobs. A job that is not on record any more is left out."""
        # The last row of a job counts: a job that was cancelled and then replayed has its present state.
        rows = await self._database.fetch("job_states", ids=sorted(job_ids), at=at)
        return {row["id"]: JobState(row["state"]) for row in rows}

    @reads
    async def standings(self, job_ids: Sequence[int], *, at: Stamp) -> dict[int, Standing]:
        """Each of these jobs that is live."""
        rows = await self._database.fetch("standings", ids=sorted(job_ids), at=at)
        return {row["id"]: _standing(row) for row in rows}

    @reads
    async def running(self, *, limit: int) -> list[RunningJob]:
        """Jobs that workers hold, the longest held jobs first. They are searched at the heads of the queues,
        where claims begin. In a queue that begins with thousands of jobs that no worker can run, some running
        jobs may be missing."""
        rows = await self._database.fetch("running", look=LOOK_FOR_RUNNING, limit=limit)
        return [_running_job(row) for row in rows]

    async def find(self, which: JobFilter, *, at: Stamp) -> list[Job]:
        """As `page`, but with all jobs up to the limit of the filter, even if this reads many pages."""
        return await _gathered(lambda page: self.page(page, at=at), which)

    @reads
    async def page(self, which: JobFilter, *, at: Stamp) -> JobPage:
        """Jobs in the states that the filter names, newest id first."""
        return await self._database.reading("jobs_page", lambda tx: _Search(tx, which, at).page())


async def _gathered(page: Callable[[JobFilter], Awaitable[JobPage]], which: JobFilter) -> list[Job]:
    """Jobs up to the limit of the filter, from as many pages as necessary."""
    jobs: list[Job] = []
    while True:
        found = await page(which)
        jobs += found.jobs
        if found.next is None or len(found.jobs) >= which.limit:
            return jobs
        which = replace(which, before=found.next, limit=which.limit - len(found.jobs))


class _Search:
    """The search for one page. Its statements read a bounded number of rows."""

    def __init__(self, tx: Transaction, which: JobFilter, at: Stamp) -> None:
        self._tx, self._which, self._at = tx, which, at
        self._before = which.before or NEWEST

    async def page(self) -> JobPage:
        which = self._which
        if which.key is not None:
            return _merged([await self._of_key(which.key)], which.limit)
        if which.worker is not None:
            return _merged([await self._of_worker(which.worker)], which.limit)
        if which.schedule is None:
            return _merged(await self._sources(None), which.limit)
        owners = await self._tx.fetch("schedule_ids", name=which.schedule, limit=SAME_NAME)
        parts = [part for row in owners for part in await self._sources(row["id"])]
        return _merged(parts, which.limit)

    async def _sources(self, schedule_id: int | None) -> list[_Found]:
        """The queue is the first source: a job that was replayed has its present state."""
        sources = []
        if states := _live_states(self._which):
            sources.append(await self._live(states, schedule_id))
        if JobState.DEAD in self._which.wanted:
            sources.append(await self._part("dead_page", _dead_job, schedule_id=schedule_id))
        if verdicts := [FINAL_CODE[state] for state in _finished_states(self._which)]:
            sources += await self._ended(verdicts, schedule_id)
        return sources

    async def _live(self, states: Sequence[JobState], schedule_id: int | None) -> _Found:
        if schedule_id is not None:
            own = await self._tx.fetch(
                "live_of_schedule", schedule_id=schedule_id, before=self._before, look=LOOK, at=self._at
            )
            return self._those([_live_job(row) for row in own])
        if states == (JobState.RUNNING,):
            held = await self._tx.fetch(
                "running_ids",
                queue=self._which.queue,
                before=self._before,
                limit=self._which.limit + 1,
                look=LOOK,
                at=self._at,
            )
            return self._those(await self._by_id([row["id"] for row in held]))
        wanted = None if len(states) == len(LIVE_STATES) else list(states)
        return await self._part("live_page", _live_job, states=wanted, at=self._at)

    async def _ended(self, verdicts: Sequence[int], schedule_id: int | None) -> list[_Found]:
        """Ended jobs, by the most selective index: of a schedule, of a task, or of rare verdicts."""
        if schedule_id is not None:
            own = {"schedule_id": schedule_id, "verdicts": verdicts}
            return [await self._part("ended_of_schedule", _ended_job, **own)]
        if FINAL_CODE[JobState.SUCCEEDED] in verdicts:
            statement = "ended_page" if self._which.task is None else "ended_of_task"
            return [await self._part(statement, _ended_job, verdicts=verdicts)]
        return [await self._part("ended_unusually", _ended_job, verdict=verdict) for verdict in verdicts]

    async def _part(self, statement: str, read: Callable[[Row], Job], **more: object) -> _Found:
        rows = await self._tx.fetch(
            statement,
            task=self._which.task,
            queue=self._which.queue,
            since=self._which.since,
            until=self._which.until,
            before=self._before,
            limit=self._which.limit + 1,
            look=LOOK,
            **more,
        )
        frontier = rows[-1]["job_id"] if rows and rows[-1]["place"] == LOOK else None
        return _found([read(row) for row in rows if row["fits"]], self._which.limit, frontier)

    async def _of_key(self, name: str) -> _Found:
        holders = await self._tx.fetch("jobs_of_key", name=name, limit=self._which.limit)
        jobs = [await _job(self._tx, row["job_id"], self._at) for row in holders]
        return self._those([job for job in jobs if job is not None])

    async def _of_worker(self, worker_id: int) -> _Found:
        rows = await self._tx.fetch("holding", id=worker_id)
        jobs = await self._by_id([job_id for row in rows for job_id in _holding(row).holding])
        return self._those([job for job in jobs if job.worker_id == worker_id])

    async def _by_id(self, ids: Sequence[int]) -> list[Job]:
        below = sorted(each for each in ids if each < self._before)
        return [_live_job(row) for row in await self._tx.fetch("live_by_id", ids=below, at=self._at)]

    def _those(self, jobs: Sequence[Job]) -> _Found:
        """The matches among these jobs, which are the whole source, newest first."""
        return _found([job for job in jobs if _matches(job, self._which)], self._which.limit, None)


async def _job(where: Database | Transaction, job_id: int, at: Stamp) -> Job | None:
    if rows := await where.fetch("live_job", id=job_id, at=at):
        return _live_job(rows[0])
    if rows := await where.fetch("dead_job", id=job_id):
        return _dead_job(rows[0])
    if rows := await where.fetch("ended_job", id=job_id):
        return _ended_job(rows[0])
    # The job may have been replayed between two of these statements. A transaction around them would cost
    # more.
    if rows := await where.fetch("live_job", id=job_id, at=at):
        return _live_job(rows[0])
    return None


def _dead_job(row: Row) -> Job:
    return dead_job(row).as_job()


def _live_states(which: JobFilter) -> tuple[JobState, ...]:
    """The wanted states of jobs in the queue."""
    return tuple(each for each in which.wanted if each in LIVE_STATES)


def _finished_states(which: JobFilter) -> tuple[JobState, ...]:
    """The wanted states of jobs that are in history only."""
    return tuple(each for each in which.wanted if each not in (*LIVE_STATES, JobState.DEAD))


def _matches(job: Job, which: JobFilter) -> bool:
    """Whether a job matches the filter, for jobs that were found in another way."""
    moment = job.enqueued_at if job.state in LIVE_STATES else job.finished_at or job.enqueued_at
    return (
        (job.state in which.wanted or _any_state(which))
        and which.task in (None, job.task)
        and which.queue in (None, job.queue)
        and (which.since is None or moment >= which.since)
        and (which.until is None or moment < which.until)
        and job.id < (which.before or NEWEST)
    )


def _any_state(which: JobFilter) -> bool:
    """Whether the job may be in any state: the filter has a key and no state."""
    return which.key is not None and which.state is None and not which.states


def _merged(sources: Iterable[_Found], limit: int) -> JobPage:
    """One page of several sources. If a job is in two sources, the first counts."""
    parts = list(sources)
    down_to = max((each.down_to for each in parts), default=0)
    jobs: dict[int, Job] = {}
    for part in parts:
        for job in part.jobs:
            if job.id >= down_to:
                jobs.setdefault(job.id, job)
    ordered = sorted(jobs.values(), key=lambda job: -job.id)
    if len(ordered) > limit:
        return JobPage(jobs=tuple(ordered[:limit]), next=ordered[limit - 1].id)
    partial = any(each.gave_up for each in parts if each.down_to == down_to)
    return JobPage(
        jobs=tuple(ordered),
        next=down_to or None,
        partial=partial and len(ordered) < limit,
    )


def _found(jobs: Sequence[Job], limit: int, frontier: int | None) -> _Found:
    """The part of one source. `jobs` are up to limit + 1 matches; `frontier` is the last row that was read,
    if the search stopped there."""
    if len(jobs) > limit:
        return _Found(jobs=tuple(jobs[:limit]), down_to=jobs[limit - 1].id)
    return _Found(jobs=tuple(jobs), down_to=frontier or 0, gave_up=frontier is not None)


class _Found(Value, frozen=True, kw_only=True):
    """The matches of one source, newest id first."""

    jobs: tuple[Job, ...]
    down_to: int = 0
    """Every match with this id or a higher id is included; zero when there are no other matches."""
    gave_up: bool = False
    """Whether the search stopped because it had read enough rows, not because it had enough matches."""
