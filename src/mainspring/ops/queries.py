"""What operators ask. Names and ids that are not there raise NotFound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.clock import Clock
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.fleet import MemberInfo
from mainspring.model.history import DeadFilter, DeadGroup, DeadJob, JobFilter, QueueDepth, Run
from mainspring.model.job import Job, JobState
from mainspring.model.pages import JobPage, ScheduleCounts, ScheduleFilter, SchedulePage
from mainspring.model.report import Progress
from mainspring.model.schedule import Period, Schedule, ScheduleVersion, Slot
from mainspring.model.value import Value
from mainspring.model.workflow import Workflow
from mainspring.ops.belonging import StepOf, step_of
from mainspring.ops.schedules.triggers import calendars_of, readable
from mainspring.ops.why.obstacle import hint
from mainspring.store.periods import slot_period
from mainspring.store.ports import Store
from mainspring.trigger.base import Trigger
from mainspring.trigger.misfire import LATE

LAST_SLOTS, NEXT_FIRES = 10, 5


class JobHistory(Value, frozen=True, kw_only=True):
    """A job and every run of it, oldest first."""

    job: Job
    runs: tuple[Run, ...]
    progress: Progress | None = None
    """How far a running one said it was."""
    awaits: str | None = None
    """The event that it waits for."""
    workflow: Workflow | None = None
    """The workflow that it is."""
    step: StepOf | None = None
    """The step of a workflow that it is."""
    period: Period | None = None
    """What the job of a slot stands for."""


class LoggedRun(Value, frozen=True, kw_only=True):
    """One run and what was captured of its log."""

    number: int
    """Its place among the runs on record, counted from 1."""
    run: Run
    log: str | None
    """None when it logged nothing, or its worker never got to write it."""


class ScheduleHistory(Value, frozen=True, kw_only=True):
    """A schedule, its newest slots first, and the next instants it names."""

    schedule: Schedule
    slots: tuple[Slot, ...]
    fires: tuple[datetime, ...] | None
    """None when this version cannot read the trigger."""


class Queries:
    """Questions to one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def job(self, job_id: int) -> JobHistory:
        """One job with its runs."""
        job = await self._store.jobs.get(job_id, at=self._clock.stamp())
        if job is None:
            raise NotFound("job", job_id)
        progress = await self._store.runs.progress(job_id) if job.state is JobState.RUNNING else None
        awaited = await self._store.events.awaited([job_id]) if job.state is JobState.DELAYED else {}
        return JobHistory(
            job=job,
            runs=tuple(await self._store.runs.of(job_id)),
            progress=progress,
            awaits=awaited.get(job_id),
            workflow=await self._store.workflows.get(job_id),
            step=await step_of(self._store, job_id),
            period=await slot_period(self._store, job),
        )

    async def logs(self, job_id: int, *, number: int | None = None) -> list[LoggedRun]:
        """What was captured of a job's runs, oldest first, or of one of them."""
        history = await self.job(job_id)
        texts = {(each.worker_id, each.fence): each.text for each in await self._store.runs.logs(job_id)}
        found = [
            LoggedRun(number=place, run=run, log=texts.get((run.worker_id or 0, run.fence)))
            for place, run in enumerate(history.runs, 1)
        ]
        if number is None:
            return found
        if not 1 <= number <= len(found):
            there = (
                f"a run of job {job_id}: 1 to {len(found)}" if found else f"none: job {job_id} has no run yet"
            )
            raise InvalidArgument("run", number, there)
        return [found[number - 1]]

    async def jobs(self, which: JobFilter) -> list[Job]:
        """One page of jobs, newest first."""
        return await self._store.jobs.find(which, at=self._clock.stamp())

    async def jobs_page(self, which: JobFilter) -> JobPage:
        """The same, with where to go on; it may have fewer than asked for, and never takes long."""
        return await self._store.jobs.page(which, at=self._clock.stamp())

    async def dead(self, which: DeadFilter) -> list[DeadJob]:
        """One page of dead letters, newest first."""
        return await self._store.dead_letters.find(which)

    async def dead_letter(self, job_id: int) -> DeadJob:
        """One dead letter."""
        found = await self._store.dead_letters.find(DeadFilter(ids=(job_id,), limit=1))
        if not found:
            raise NotFound("dead letter", job_id)
        return found[0]

    async def dead_groups(self, which: DeadFilter) -> list[DeadGroup]:
        """Dead letters by task and last error, the largest group first."""
        return await self._store.dead_letters.groups(which)

    async def hints(self, jobs: Sequence[Job]) -> dict[int, str]:
        """What keeps jobs of a list from being claimed, by id; most have nothing in their way."""
        delayed = [each.id for each in jobs if each.state is JobState.DELAYED]
        awaited = await self._store.events.awaited(delayed) if delayed else {}
        waits = {job_id: f"waits for event {name}" for job_id, name in awaited.items()}
        if not any(each.state is JobState.READY for each in jobs):
            return waits
        members = await self.members()
        found = {each.id: hint(each, members) for each in jobs}
        return waits | {job_id: said for job_id, said in found.items() if said is not None}

    async def schedules(self) -> list[Schedule]:
        """Every schedule, by name."""
        return await self._store.schedules.all()

    async def schedules_page(self, which: ScheduleFilter) -> SchedulePage:
        """One page of schedules, by name, each with its newest slot."""
        return await self._store.schedules.page(which, at=self._clock.stamp())

    async def schedule_counts(self) -> ScheduleCounts:
        """How many schedules there are, are paused, are late."""
        return await self._store.schedules.counts(late=LATE, at=self._clock.stamp())

    async def schedule(
        self, name: str, *, slots: int = LAST_SLOTS, fires: int = NEXT_FIRES
    ) -> ScheduleHistory:
        """One schedule with its last slots and its next fires."""
        schedule = await self._store.schedules.get(name)
        if schedule is None:
            raise NotFound("schedule", name)
        now = await self._store.now(at=self._clock.stamp())
        return ScheduleHistory(
            schedule=schedule,
            slots=tuple(await self._store.slots.of(name, limit=slots)) if slots else (),
            fires=next_fires(
                readable(schedule.trigger, await calendars_of(self._store, [schedule.trigger])), now, fires
            ),
        )

    async def versions(self, name: str) -> list[ScheduleVersion]:
        """Every version of a schedule, oldest first; of one that was deleted too."""
        versions = await self._store.schedules.versions(name)
        if not versions and await self._store.schedules.get(name) is None:
            raise NotFound("schedule", name)
        return versions

    async def members(self) -> list[MemberInfo]:
        """Every process on record."""
        return await self._store.processes.all(at=self._clock.stamp())

    async def depth(self, *, about: bool = False) -> list[QueueDepth]:
        """Live jobs by queue and task; `about` for whoever asks often, or cannot wait."""
        return await self._store.queues.depth(at=self._clock.stamp(), about=about)


def next_fires(trigger: Trigger | None, after: datetime, count: int) -> tuple[datetime, ...] | None:
    """The next instants a trigger names, fewer when it ends; None when it could not be read."""
    if trigger is None:
        return None
    found: list[datetime] = []
    moment: datetime | None = after
    while moment is not None and len(found) < count:
        moment = trigger.next_after(moment)
        if moment is not None:
            found.append(moment)
    return tuple(found)
