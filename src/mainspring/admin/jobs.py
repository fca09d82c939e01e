"""Jobs: put them into queues, look at them, cancel, retry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NoReturn, Protocol, Self

import msgspec
from msgspec import UNSET, UnsetType

from mainspring.admin.order import AdminContext, Noun, blocking, one_or_more, order
from mainspring.admin.views import JobView, ProgressView, RunView
from mainspring.admin.why.answer import Answer
from mainspring.admin.why.asking import Why
from mainspring.admin.why.obstacle import hint
from mainspring.admin.workflow_of_job import StepOf, retry_words, step_of
from mainspring.clock import Clock
from mainspring.declare.handle import JobHandle
from mainspring.declare.registry import Registry
from mainspring.declare.task import Task
from mainspring.duration import Duration
from mainspring.errors import InvalidArgument, NotFound, UnknownTask
from mainspring.model.fleet import Role
from mainspring.model.history import JobFilter, Run
from mainspring.model.job import Job, JobState, NewJob
from mainspring.model.pages import JobPage
from mainspring.model.report import Progress
from mainspring.model.request import RequestKey
from mainspring.model.schedule import Period
from mainspring.model.settlement import Verdict
from mainspring.model.unique import Inserted
from mainspring.model.value import Value
from mainspring.model.workflow import Workflow
from mainspring.store.database import Stamp
from mainspring.store.periods import slot_period
from mainspring.store.store import Store
from mainspring.tracing import traced

LIVE = JobFilter()


class Effect(StrEnum):
    """What an order did to one job."""

    CANCELLED = "cancelled"
    HASTENED = "hastened"
    REPLAYED = "replayed"
    PURGED = "purged"
    NONE = "none"


class Done(Value, frozen=True, kw_only=True):
    """One job's answer to an order; `why` says why nothing was done."""

    job_id: int = msgspec.field(name="id")
    effect: Effect
    was: JobState | None = None
    why: str = ""


class JobHistory(Value, frozen=True, kw_only=True):
    """A job and every run of it, oldest first."""

    job: Job
    runs: tuple[Run, ...]
    progress: Progress | None = None
    """How far a running job said it was."""
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


class EnqueueRequest(Value, frozen=True, kw_only=True):
    """One call of a task, with what `Task.using` takes; None leaves it to the task."""

    task: str
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = {}
    delay: Duration | None = None
    run_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    attempts: int | None = None
    key: str | None = None
    scope: str | None = None
    period: Duration | None = None
    on_duplicate: str | None = None
    debounce: Duration | None = None
    expires: Duration | datetime | None = None


class Move(Protocol):
    """A store's method that moves jobs and answers the ids that were moved."""

    async def __call__(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]: ...


_OPTIONS = tuple(each for each in EnqueueRequest.__struct_fields__ if each not in ("task", "args", "kwargs"))


def effects(done: Sequence[Done]) -> dict[str, list[int]]:
    """Which jobs met with which effect, for the audit log."""
    return {
        str(effect): ids
        for effect in Effect
        if (ids := [each.job_id for each in done if each.effect is effect])
    }


def tasks_of(requests: Sequence[EnqueueRequest], **_: object) -> str:
    """Of which tasks jobs are wanted, for the audit log."""
    return " ".join(dict.fromkeys(each.task for each in requests))


def _enqueued(answer: tuple[list[JobHandle[Any]], bool]) -> object:
    return {"jobs": [each.id for each in answer[0]]}


class Jobs(Noun):
    """Jobs of one store."""

    async def aget(self, job_id: int) -> JobHistory:
        """One job with its runs."""
        store = await self._store()
        job = await store.jobs.get(job_id, at=self._stamp)
        if job is None:
            raise NotFound("job", job_id)
        progress = await store.runs.progress(job_id) if job.state is JobState.RUNNING else None
        awaited = await store.events.awaited([job_id]) if job.state is JobState.DELAYED else {}
        return JobHistory(
            job=job,
            runs=tuple(await store.runs.of(job_id)),
            progress=progress,
            awaits=awaited.get(job_id),
            workflow=await store.workflows.get(job_id),
            step=await step_of(store, job_id),
            period=await slot_period(store, job),
        )

    async def afind(self, which: JobFilter = LIVE) -> list[Job]:
        """Jobs, newest first; without states, those that have not ended."""
        return await (await self._store()).jobs.find(which, at=self._stamp)

    async def apage(self, which: JobFilter = LIVE) -> JobPage:
        """The same, with where the next page begins; it may have fewer than asked for, and never takes
        long."""
        return await (await self._store()).jobs.page(which, at=self._stamp)

    async def alogs(
        self, job_id: int, *, number: int | None = None, known: JobHistory | None = None
    ) -> list[LoggedRun]:
        """What was captured of the logs of a job's runs, oldest first, or of one of them; `known` is what the
        caller has read of the job."""
        history = known or await self.aget(job_id)
        captured = await (await self._store()).runs.logs(job_id)
        texts = {(each.worker_id, each.fence): each.text for each in captured}
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

    async def ahints(self, jobs: Sequence[Job]) -> dict[int, str]:
        """What keeps jobs of a list from being claimed, by id; most have nothing in their way."""
        store = await self._store()
        delayed = [each.id for each in jobs if each.state is JobState.DELAYED]
        awaited = await store.events.awaited(delayed) if delayed else {}
        waits = {job_id: f"waits for event {name}" for job_id, name in awaited.items()}
        if not any(each.state is JobState.READY for each in jobs):
            return waits
        members = await store.processes.all(at=self._stamp)
        found = {each.id: hint(each, members) for each in jobs}
        return waits | {job_id: said for job_id, said in found.items() if said is not None}

    async def awhy(self, job_id: int, *, known: JobHistory | None = None) -> Answer:
        """What a job waits for, or how it ended; `known` is what the caller has read of it."""
        why = Why(await self._store(), self._clock)
        return await (why.job(job_id) if known is None else why.of_job(known.job, known.step, known.runs))

    @order("jobs.enqueue", about=tasks_of, result=_enqueued)
    async def aenqueue(
        self, requests: Sequence[EnqueueRequest], *, request: RequestKey | None = None
    ) -> tuple[list[JobHandle[Any]], bool]:
        """Put jobs into their queues, all or none. With the key of a request, once: answers the handles, and
        whether the request had been answered before."""
        return await put(await self._store(), self._context, requests, request)

    @order("jobs.cancel", result=effects)
    async def acancel(self, ids: int | Sequence[int]) -> list[Done]:
        """Take live jobs out of their queues for good; a running one is taken from its worker."""
        store = await self._store()
        found = await _found(store, one_or_more(ids), self._stamp)
        return [
            _refused(found[each.job_id])
            if each.was is None
            else Done(job_id=each.job_id, effect=Effect.CANCELLED, was=each.was)
            for each in await store.jobs.cancel(list(found), at=self._stamp)
        ]

    @order("jobs.retry", result=effects)
    async def aretry(self, ids: int | Sequence[int]) -> list[Done]:
        """Make delayed jobs due now and put dead ones back into their queues."""
        store = await self._store()
        found = await _found(store, one_or_more(ids), self._stamp)
        done = [
            *await _moved(found, JobState.DELAYED, store.jobs.run_now, Effect.HASTENED, self._stamp),
            *await _moved(found, JobState.DEAD, store.dead_letters.replay, Effect.REPLAYED, self._stamp),
        ]
        return _in_order(found, done)

    get = blocking(aget)
    find = blocking(afind)
    page = blocking(apage)
    logs = blocking(alogs)
    hints = blocking(ahints)
    why = blocking(awhy)
    enqueue = blocking(aenqueue)
    cancel = blocking(acancel)
    retry = blocking(aretry)


async def replayed(store: Store, ids: Sequence[int], *, at: Stamp) -> list[Done]:
    """Put dead jobs back into their queues; a job that is not dead, or is not known, answers so."""
    found = await _found(store, ids, at)
    return _in_order(
        found, await _moved(found, JobState.DEAD, store.dead_letters.replay, Effect.REPLAYED, at)
    )


async def _found(store: Store, ids: Sequence[int], at: Stamp) -> dict[int, Job]:
    found: dict[int, Job] = {}
    for job_id in dict.fromkeys(ids):
        job = await store.jobs.get(job_id, at=at)
        if job is None:
            raise NotFound("job", job_id)
        found[job_id] = job
    return found


async def _moved(
    found: Mapping[int, Job], state: JobState, move: Move, effect: Effect, at: Stamp
) -> list[Done]:
    """Move those in this state; a job that left it meanwhile answers so."""
    ids = [job.id for job in found.values() if job.state is state]
    moved = set(await move(ids, at=at)) if ids else set()
    return [
        Done(job_id=job_id, effect=effect, was=state)
        if job_id in moved
        else Done(job_id=job_id, effect=Effect.NONE, was=state, why=_why_left(found[job_id]))
        for job_id in ids
    ]


def _in_order(found: Mapping[int, Job], done: Sequence[Done]) -> list[Done]:
    answers = {each.job_id: each for each in done}
    return [answers.get(job.id) or _refused(job) for job in found.values()]


def _why_left(job: Job) -> str:
    if job.state is JobState.DEAD and job.workflow_id is not None:
        return f"belongs to workflow {job.workflow_id}, which `{retry_words(job.workflow_id)}` runs again"
    return "has moved on meanwhile"


def _refused(job: Job) -> Done:
    return Done(job_id=job.id, effect=Effect.NONE, was=job.state, why=_WHY_NOT[job.state])


_WHY_NOT = {
    JobState.DELAYED: "is waiting for its time",
    JobState.READY: "is due already and waits for a worker",
    JobState.RUNNING: "is running",
    JobState.SUCCEEDED: "has succeeded",
    JobState.DEAD: "is dead",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded by its handler",
}


def job_of(task: Task[..., Any], request: EnqueueRequest) -> NewJob:
    """The job of this task that is asked for; InvalidArgument where the arguments or options do not fit."""
    options = {each: getattr(request, each) for each in _OPTIONS}
    return task.using(**options).job(*request.args, **request.kwargs)


async def put(
    store: Store,
    context: AdminContext,
    requests: Sequence[EnqueueRequest],
    request: RequestKey | None = None,
) -> tuple[list[JobHandle[Any]], bool]:
    """Make jobs of requests and put them into their queues. A task that the app declares is called as in
    Python: its signature, its limits, its defaults. One that only workers know is taken as it comes, and its
    run will tell."""
    clock = context.clock
    tasks = _Tasks(store, clock, context.registry)
    wanted = [await tasks.job(each, place, len(requests)) for place, each in enumerate(requests)]
    with traced(context.tracer, wanted) as jobs:
        if request is not None:
            answered = await store.queue.insert_once(request, jobs, at=clock.stamp())
            return _handles(jobs, answered.jobs), answered.again
        if any(each.unique is not None for each in jobs):
            return _handles(jobs, await store.queue.insert_unique(jobs, at=clock.stamp())), False
        ids = await store.queue.insert(jobs, at=clock.stamp())
        return _handles(jobs, [Inserted(job_id=each) for each in ids]), False


class _Tasks:
    """Tasks by their names: those that the app declares, or else those that live workers know."""

    def __init__(self, store: Store, clock: Clock, registry: Registry | None) -> None:
        self._store, self._clock = store, clock
        self._declared = {} if registry is None else registry.tasks
        self._offered: frozenset[str] | None = None

    async def job(self, request: EnqueueRequest, place: int, count: int) -> NewJob:
        """The job that one of so many requests asks for."""
        try:
            return job_of(await self._task(request.task), request)
        except InvalidArgument as wrong:
            if count == 1:
                raise
            raise InvalidArgument(f"jobs.{place}.{wrong.field}", wrong.got, wrong.expected) from None

    async def _task(self, name: str) -> Task[..., Any]:
        if name in self._declared:
            return self._declared[name]
        if self._offered is None:
            members = await self._store.processes.all(at=self._clock.stamp())
            workers = [each for each in members if each.alive and each.role is Role.WORKER]
            self._offered = frozenset(task for each in workers for task in each.tasks)
        if name not in self._offered:
            raise UnknownTask(name, (*self._declared, *self._offered))
        return Task(_anything, sender=_NOBODY, name=name)


def _handles(jobs: Sequence[NewJob], done: Sequence[Inserted]) -> list[JobHandle[Any]]:
    return [
        JobHandle(id=one.job_id, task=job.task, queue=job.queue, created=one.created)
        for job, one in zip(jobs, done, strict=True)
    ]


def _anything(*args: object, **kwargs: object) -> NoReturn:
    raise NotImplementedError("known by its name alone")


class _Nobody:
    """Jobs of such a task are inserted by us."""

    def enqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> NoReturn:
        raise NotImplementedError

    async def aenqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> NoReturn:
        raise NotImplementedError


_NOBODY = _Nobody()


class JobDetail(JobView, frozen=True, kw_only=True):
    """A job with its runs, and what it has to do with workflows."""

    period: Period | None
    progress: ProgressView | None
    awaits: str | None
    workflow: str | UnsetType = UNSET
    """The name of the workflow that it is."""
    workflow_id: int | UnsetType = UNSET
    """The workflow whose step it is."""
    step: str | UnsetType = UNSET
    item: int | UnsetType | None = UNSET
    runs: tuple[RunView, ...]

    @classmethod
    def of_history(cls, found: JobHistory) -> Self:
        """Of a job and its runs."""
        place, progress = found.step, found.progress
        return cls.of(
            found.job,
            period=found.period,
            progress=None if progress is None else ProgressView.of(progress),
            awaits=found.awaits,
            workflow=UNSET if found.workflow is None else found.workflow.name,
            workflow_id=UNSET if place is None else place.workflow.id,
            step=UNSET if place is None else place.name,
            item=UNSET if place is None else place.step.item,
            runs=tuple(RunView.of(each) for each in found.runs),
        )


class RunLogView(Value, frozen=True, kw_only=True):
    """What was captured of the log of one run."""

    run: int
    attempt: int
    verdict: Verdict
    fence: int
    finished_at: datetime
    log: str | None

    @classmethod
    def of(cls, logged: LoggedRun) -> Self:
        """Of a run and its log."""
        run = logged.run
        return cls(
            run=logged.number,
            attempt=run.attempt,
            verdict=run.verdict,
            fence=run.fence,
            finished_at=run.finished_at,
            log=logged.log,
        )
