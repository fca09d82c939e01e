"""Reads the records for a `why`; pure functions make the answer from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.admin.schedules.triggers import calendars_of
from mainspring.admin.slot_verification.verifier import ledger
from mainspring.admin.views import to_json
from mainspring.admin.why.answer import Answer
from mainspring.admin.why.job import (
    JobFacts,
    StepOf,
    goes_before,
    is_held,
    step_of,
    why_job,
    why_running,
    why_unmade,
)
from mainspring.admin.why.slot import Records, no_slot_yet, row_of, why_next, why_slot
from mainspring.admin.words import combined
from mainspring.admin.workflows.queries import view_of
from mainspring.admin.workflows.views import WorkflowView
from mainspring.clock import Clock
from mainspring.errors import NotFound
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import Job, JobFilter, JobState
from mainspring.model.limit import LimitKeyInfo
from mainspring.model.process import Role
from mainspring.model.queue import QueuePause
from mainspring.model.run import Run
from mainspring.model.schedule import Slot
from mainspring.model.value import Value
from mainspring.store.periods import slot_period
from mainspring.store.store import Store

PAGE, MOST, HOLDERS = 1000, 100_000, 10


class LastAndNext(Value, frozen=True, kw_only=True):
    """The answers about a schedule's last slot and its next slot."""

    last: Answer
    next: Answer


class Why:
    """The questions of `why` about one store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def slot(self, name: str, at: datetime) -> Answer:
        """What a schedule did, or will do, at a moment."""
        records = await self.records(name, at)
        job = await self._job_of(row_of(records.rows, at))
        return await self._with_period(why_slot(records, at, job), job)

    async def schedule(self, name: str) -> LastAndNext:
        """What a schedule did last and does next."""
        return await self.last_and_next(await self.records(name))

    async def last_and_next(self, records: Records) -> LastAndNext:
        """The same for a schedule whose records were read before."""
        last = no_slot_yet(records)
        if records.rows:
            newest = records.rows[0]
            job = await self._job_of(newest)
            last = await self._with_period(why_slot(records, newest.slot_at, job), job)
        return LastAndNext(last=last, next=why_next(records))

    async def job(self, job_id: int) -> Answer:
        """What a job waits for, or how it ended."""
        job = await self._store.jobs.get(job_id, at=self._clock.stamp())
        step = await step_of(self._store, job_id)
        if job is None:
            if step is None:
                raise NotFound("job", job_id)
            return why_unmade(step, await self._workflow(step.workflow.id))
        return await self.of_job(job, step, await self._store.runs.of(job_id))

    async def of_job(self, job: Job, step: StepOf | None, runs: Sequence[Run]) -> Answer:
        """The same for a job that was read before, with its step and its runs."""
        job_id = job.id
        if job.state is JobState.RUNNING and job.worker_id is None:
            return why_running(job_id, await self._workflow(job_id), step)
        ahead, counted_all = await self._ahead(job)
        letters = await self._store.dead_letters.find(DeadFilter(ids=(job_id,), limit=1))
        found = why_job(
            JobFacts(
                job=job,
                now=await self._store.now(at=self._clock.stamp()),
                processes=tuple(await self._store.processes.all(at=self._clock.stamp())),
                runs=tuple(runs),
                reason=letters[0].reason if letters else None,
                ahead=ahead,
                counted_all=counted_all,
                blocker=await self._blocker(job) if is_held(job) else None,
                limit_keys=await self._limit_keys(job),
                pause=await self._pause(job),
                progress=await self._store.runs.progress(job_id) if job.state is JobState.RUNNING else None,
                awaits=(await self._store.events.awaited([job_id])).get(job_id),
                checkpoints=(await self._store.effects.steps(job_id, at=self._clock.stamp())).checkpoints,
                step=step,
            )
        )
        return await self._with_period(found, job)

    async def _with_period(self, found: Answer, job: Job | None) -> Answer:
        """The answer, with the period that the job of a slot covers."""
        period = None if job is None else await slot_period(self._store, job)
        if period is None:
            return found
        sentence = f"{found.sentence} {combined(period)}".rstrip()
        facts = {**found.facts, "period": to_json(period)}
        return Answer(because=found.because, sentence=sentence, facts=facts)

    async def _workflow(self, workflow_id: int) -> WorkflowView:
        return await view_of(self._store, workflow_id, items=0, at=self._clock.stamp())

    async def _limit_keys(self, job: Job) -> tuple[LimitKeyInfo, ...]:
        return tuple(await self._store.limits.keys_of(job.id, holders=HOLDERS)) if job.waits_for_limit else ()

    async def _pause(self, job: Job) -> QueuePause | None:
        if job.state is not JobState.READY:
            return None
        return next((each for each in await self._store.queues.pauses() if each.queue == job.queue), None)

    async def records(
        self, name: str, at: datetime | None = None, *, rows: Sequence[Slot] | None = None
    ) -> Records:
        """The records about one schedule, with its ledger back to a moment, or the newest row of its ledger.
        `rows` are the rows that the caller has already read."""
        schedule = await self._store.schedules.get(name)
        versions = await self._store.schedules.versions(name)
        if schedule is None and not versions:
            raise NotFound("schedule", name)
        processes = await self._store.processes.all(at=self._clock.stamp())
        stored = [each.schedule for each in versions] + ([] if schedule is None else [schedule])
        return Records(
            name=name,
            schedule=schedule,
            versions=tuple(versions),
            rows=tuple(await self._rows(name, at) if rows is None else rows),
            schedulers=sum(each.alive and each.role is Role.SCHEDULER for each in processes),
            calendars=await calendars_of(self._store, {each.trigger for each in stored}),
            # Read last: a slot that was decided meanwhile must not seem to be in the future.
            now=await self._store.now(at=self._clock.stamp()),
        )

    async def _rows(self, name: str, at: datetime | None) -> list[Slot]:
        """The newest row; or all rows from the moment on, and the newest row before it."""
        if at is None:
            return await self._store.slots.of(name, limit=1)
        older = await self._store.slots.of(name, before=at, limit=1)
        return await ledger(self._store, name, start=at, most=MOST) + older

    async def _job_of(self, row: Slot | None) -> Job | None:
        if row is None or row.job_id is None:
            return None
        return await self._store.jobs.get(row.job_id, at=self._clock.stamp())

    async def _ahead(self, job: Job) -> tuple[int, bool]:
        """How many ready jobs of its queue are before this job, and whether all were counted."""
        if job.state is not JobState.READY:
            return 0, True
        which = JobFilter(state=JobState.READY, queue=job.queue, limit=PAGE)
        ready = await self._store.jobs.find(which, at=self._clock.stamp())
        return sum(goes_before(each) < goes_before(job) for each in ready), len(ready) < PAGE

    async def _blocker(self, job: Job) -> int | None:
        """The live job that a held job waits for: a job that may run, or else a job held before it."""
        live = await self._store.jobs.find(JobFilter(task=job.task, limit=PAGE), at=self._clock.stamp())
        others = [each for each in live if each.schedule_id == job.schedule_id and each.id != job.id]
        free = [each.id for each in others if not is_held(each)]
        return min(free or [each.id for each in others if each.id < job.id], default=None)
