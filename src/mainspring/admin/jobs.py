"""Jobs: enqueue them, find them, cancel, retry, reschedule and edit them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, NoReturn, Self

import msgspec
from msgspec import UNSET, UnsetType

from mainspring.admin.order import AdminContext, Noun, blocking, carried_out, one_or_more, order
from mainspring.admin.views import JobView, ProgressView, RunView, iso
from mainspring.admin.why.answer import Answer
from mainspring.admin.why.asking import Why
from mainspring.admin.why.job import StepOf, hint, retry_words, step_of
from mainspring.clock import Clock
from mainspring.duration import Duration
from mainspring.errors import InvalidArgument, NotFound, UnknownTask
from mainspring.model.job import Inserted, Job, JobEdit, JobFilter, JobPage, JobState, NewJob, RequestKey
from mainspring.model.process import Role
from mainspring.model.run import Progress, Run, Verdict
from mainspring.model.schedule import Period
from mainspring.model.value import Value
from mainspring.model.workflow import WorkflowRecord
from mainspring.store.database import Stamp
from mainspring.store.periods import slot_period
from mainspring.store.store import Store
from mainspring.tasks import payload
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.registry import Registry
from mainspring.tasks.task import Task
from mainspring.telemetry.traces import traced

LIVE = JobFilter()
NEVER = "never"
"""The value of `expires` that removes the deadline."""
_WAITING = (JobState.DELAYED, JobState.READY)
_TRIES = 3
_WHY_NOT = {
    JobState.DELAYED: "is waiting for its time",
    JobState.READY: "is due already and waits for a worker",
    JobState.RUNNING: "is running",
    JobState.SUCCEEDED: "has succeeded",
    JobState.DEAD: "is dead",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded by its handler",
}


class Effect(StrEnum):
    """What an order did to one job."""

    CANCELLED = "cancelled"
    HASTENED = "hastened"
    RESCHEDULED = "rescheduled"
    EDITED = "edited"
    REPLAYED = "replayed"
    PURGED = "purged"
    NONE = "none"


class Done(Value, frozen=True, kw_only=True):
    """The result of an order for one job; `why` is the reason if nothing was done."""

    job_id: int = msgspec.field(name="id")
    effect: Effect
    was: JobState | None = None
    why: str = ""


class JobHistory(Value, frozen=True, kw_only=True):
    """A job and every run of it, oldest first."""

    job: Job
    runs: tuple[Run, ...]
    progress: Progress | None = None
    """The progress that a running job reported."""
    awaits: str | None = None
    """The event that the job waits for."""
    workflow: WorkflowRecord | None = None
    """The workflow, if the job is one."""
    step: StepOf | None = None
    """The step, if the job is a step of a workflow."""
    period: Period | None = None
    """The period that the job of a slot covers."""


class LoggedRun(Value, frozen=True, kw_only=True):
    """One run and its captured log lines."""

    number: int
    """Its place among the stored runs, counted from 1."""
    run: Run
    log: str | None
    """None if the run logged nothing, or if its worker ended before it could write the log."""


class EnqueueRequest(Value, frozen=True, kw_only=True):
    """One call of a task, with the options of `Task.using`. None takes the option of the task."""

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


def effects(done: Sequence[Done]) -> dict[str, list[int]]:
    """The ids of the jobs by effect, for the audit log."""
    return {
        str(effect): ids
        for effect in Effect
        if (ids := [each.job_id for each in done if each.effect is effect])
    }


def tasks_of(requests: Sequence[EnqueueRequest], **_: object) -> str:
    """The names of the requested tasks, for the audit log."""
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
        processes = await store.processes.all(at=self._stamp)
        found = {each.id: hint(each, processes) for each in jobs}
        return waits | {job_id: said for job_id, said in found.items() if said is not None}

    async def awhy(self, job_id: int, *, known: JobHistory | None = None) -> Answer:
        """What a job waits for, or how it ended; `known` is what the caller has read of it."""
        why = Why(await self._store(), self._clock)
        return await (why.job(job_id) if known is None else why.of_job(known.job, known.step, known.runs))

    @order("jobs.enqueue", about=tasks_of, result=_enqueued, several=True)
    async def aenqueue(
        self, requests: Sequence[EnqueueRequest], *, request: RequestKey | None = None
    ) -> tuple[list[JobHandle[Any]], bool]:
        """Put jobs into their queues, all or none. With the key of a request, once: answers the handles, and
        whether the request had been answered before."""
        return await put(await self._store(), self._context, requests, request)

    @order("jobs.cancel", result=effects)
    async def acancel(self, ids: int | Sequence[int]) -> list[Done]:
        """Remove live jobs from their queues for good. A running job is taken from its worker."""
        store = await self._store()
        found = await _found(store, one_or_more(ids), self._stamp)
        return await carried_out(
            store.jobs.cancel(list(found), at=self._stamp),
            lambda cancelled: [
                _refused(found[each.job_id])
                if each.was is None
                else Done(job_id=each.job_id, effect=Effect.CANCELLED, was=each.was)
                for each in cancelled
            ],
        )

    @order("jobs.retry", result=effects)
    async def aretry(self, ids: int | Sequence[int]) -> list[Done]:
        """Make delayed jobs due now and put dead ones back into their queues."""
        store = await self._store()
        found = await _found(store, one_or_more(ids), self._stamp)
        delayed, dead = _those(found, JobState.DELAYED), _those(found, JobState.DEAD)
        return await carried_out(
            store.jobs.retry(delayed, dead, at=self._stamp),
            lambda moved: _moved(
                found, {JobState.DELAYED: Effect.HASTENED, JobState.DEAD: Effect.REPLAYED}, moved
            ),
        )

    @order("jobs.reschedule", result=effects)
    async def areschedule(
        self, ids: int | Sequence[int], *, run_at: datetime | None = None, delay: Duration | None = None
    ) -> list[Done]:
        """Let waiting jobs run at this moment, or after this delay. A moment in the past means now. A job
        that a worker has claimed, or whose deadline would come first, does not change."""
        if (run_at is None) == (delay is None):
            raise InvalidArgument("run_at", run_at, "either run_at or delay")
        wanted = _unknown("job").using(run_at=run_at, delay=delay).job()
        store = await self._store()
        found = await _found(store, one_or_more(ids), self._stamp)
        now = await store.now(at=self._stamp)
        then = max(wanted.run_at or now + wanted.delay, now)
        waiting = [job.id for job in found.values() if job.state in _WAITING]
        return await carried_out(
            store.jobs.reschedule(waiting, run_at=then, at=self._stamp),
            lambda moved: [_rescheduled(job, then, job.id in moved) for job in found.values()],
        )

    @order("jobs.edit", result=lambda done: effects([done]))
    async def aedit(
        self,
        job_id: int,
        *,
        args: Sequence[object] | None = None,
        kwargs: Mapping[str, object] | None = None,
        priority: int | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        expires: Duration | datetime | None = None,
    ) -> Done:
        """Change a waiting job; an option that is None stays. The options are those of an enqueue, and
        `expires="never"` removes its deadline. If the app declares the task, the arguments must fit it, and
        the limits are those of the new arguments. The job keeps its unique key. A job that a worker has
        claimed, and a step of a workflow, do not change."""
        given = {"args": args, "kwargs": kwargs, "priority": priority, "queue": queue, "attempts": attempts}
        if all(each is None for each in (*given.values(), expires)):
            raise InvalidArgument("change", {}, f"{', '.join(given)} or expires")
        store = await self._store()
        for _ in range(_TRIES):
            [job] = (await _found(store, [job_id], self._stamp)).values()
            if job.state not in _WAITING:
                return _refused(job)
            if job.workflow_id is not None:
                why = f"is a step of workflow {job.workflow_id}, which says what its steps run with"
                return Done(job_id=job_id, effect=Effect.NONE, was=job.state, why=why)
            edit = _edit_of(job, self._context.registry, given, expires)
            done = Done(job_id=job_id, effect=Effect.EDITED, was=job.state)
            # If the job was changed meanwhile, the next try starts from the changed job.
            if await carried_out(store.jobs.edit(job, edit, at=self._stamp), said=_changes(job, edit)):
                return done
        return Done(job_id=job_id, effect=Effect.NONE, was=job.state, why=_why_left(job))

    get = blocking(aget)
    find = blocking(afind)
    page = blocking(apage)
    logs = blocking(alogs)
    hints = blocking(ahints)
    why = blocking(awhy)
    enqueue = blocking(aenqueue)
    cancel = blocking(acancel)
    retry = blocking(aretry)
    reschedule = blocking(areschedule)
    edit = blocking(aedit)


async def replayed(store: Store, ids: Sequence[int], *, at: Stamp) -> list[Done]:
    """Put dead jobs back into their queues. The result of a job that is not dead has the reason."""
    found = await _found(store, ids, at)
    return await carried_out(
        store.dead_letters.replay(_those(found, JobState.DEAD), at=at),
        lambda moved: _moved(found, {JobState.DEAD: Effect.REPLAYED}, moved),
    )


def job_of(task: Task[..., Any], request: EnqueueRequest) -> NewJob:
    """The requested job of this task, or InvalidArgument if the arguments or options do not fit."""
    options = {each: getattr(request, each) for each in _OPTIONS}
    return task.using(**options).job(*request.args, **request.kwargs)


async def put(
    store: Store,
    context: AdminContext,
    requests: Sequence[EnqueueRequest],
    request: RequestKey | None = None,
) -> tuple[list[JobHandle[Any]], bool]:
    """Create the requested jobs and put them into their queues. If the app declares the task, its signature,
    limits and defaults apply. If only workers know the task, its arguments are not checked before it runs."""
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


class JobDetail(JobView, frozen=True, kw_only=True):
    """A job with its runs, and its workflow."""

    period: Period | None
    progress: ProgressView | None
    awaits: str | None
    workflow: str | UnsetType = UNSET
    """The name of the workflow, if the job is one."""
    workflow_id: int | UnsetType = UNSET
    """The workflow of which the job is a step."""
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
    """The captured log lines of one run."""

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


async def _found(store: Store, ids: Sequence[int], at: Stamp) -> dict[int, Job]:
    found: dict[int, Job] = {}
    for job_id in dict.fromkeys(ids):
        job = await store.jobs.get(job_id, at=at)
        if job is None:
            raise NotFound("job", job_id)
        found[job_id] = job
    return found


def _refused(job: Job) -> Done:
    return Done(job_id=job.id, effect=Effect.NONE, was=job.state, why=_WHY_NOT[job.state])


def _those(found: Mapping[int, Job], state: JobState) -> list[int]:
    return [job.id for job in found.values() if job.state is state]


def _moved(found: Mapping[int, Job], effects: Mapping[JobState, Effect], moved: Sequence[int]) -> list[Done]:
    """The result of each job. A job that has left its state meanwhile has no effect, and a reason."""
    return [
        _refused(job)
        if job.state not in effects
        else Done(job_id=job.id, effect=effects[job.state], was=job.state)
        if job.id in moved
        else Done(job_id=job.id, effect=Effect.NONE, was=job.state, why=_why_left(job))
        for job in found.values()
    ]


def _why_left(job: Job) -> str:
    if job.state is JobState.DEAD and job.workflow_id is not None:
        return f"belongs to workflow {job.workflow_id}, which `{retry_words(job.workflow_id)}` runs again"
    return "has moved on meanwhile"


def _unknown(task: str) -> Task[..., Any]:
    """A task of which only the name is known."""
    return Task(_anything, sender=_NOBODY, name=task)


def _anything(*args: object, **kwargs: object) -> NoReturn:
    raise NotImplementedError("known by its name alone")


class _Nobody:
    """Never called: this module inserts the jobs of such a task."""

    def enqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> NoReturn:
        raise NotImplementedError

    async def aenqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> NoReturn:
        raise NotImplementedError


_NOBODY = _Nobody()


def _rescheduled(job: Job, then: datetime, moved: bool) -> Done:
    if moved:
        return Done(job_id=job.id, effect=Effect.RESCHEDULED, was=job.state)
    if job.state not in _WAITING:
        return _refused(job)
    late = job.expires_at is not None and job.expires_at <= then
    why = f"must have succeeded by {iso(job.expires_at)}, before that time" if late else _why_left(job)
    return Done(job_id=job.id, effect=Effect.NONE, was=job.state, why=why)


def _edit_of(
    job: Job, registry: Registry | None, given: Mapping[str, Any], expires: Duration | datetime | None
) -> JobEdit:
    """The change of a job. The checks are those of an enqueue."""
    declared = None if registry is None else registry.tasks.get(job.task)
    never = expires == NEVER
    options = {each: given[each] for each in ("priority", "queue", "attempts")}
    task = (declared or _unknown(job.task)).using(**options, expires=None if never else expires)
    calls = given["args"] is not None or given["kwargs"] is not None
    had = payload.decode(job.payload)
    args = had[0] if given["args"] is None else given["args"]
    kwargs = had[1] if given["kwargs"] is None else given["kwargs"]
    if calls:
        task.check(args, kwargs)
    attempts = None if given["attempts"] is None else task.attempts
    if attempts is not None and attempts <= job.failures:
        raise InvalidArgument("attempts", attempts, f"more than {job.failures}, which have failed already")
    return JobEdit(
        payload=payload.encode(args, kwargs, field=job.task) if calls else None,
        priority=None if given["priority"] is None else task.priority,
        queue=None if given["queue"] is None else task.queue,
        max_attempts=attempts,
        limit_keys=task.limit_keys(given["queue"] or job.queue, args, kwargs)
        if declared is not None and (calls or given["queue"] is not None)
        else None,
        expires=None if expires is None or never else task.expires,
        expires_at=None if expires is None or never else task.expires_at,
        no_deadline=never,
    )


def _changes(job: Job, edit: JobEdit) -> Callable[[bool], object]:
    """The old values of what an edit changed, for the audit log."""
    was = {
        each: getattr(job, each)
        for each in ("priority", "queue", "max_attempts")
        if getattr(edit, each) is not None
    }
    if edit.payload is not None:
        was["args"], was["kwargs"] = payload.decode(job.payload)
    if edit.no_deadline or edit.expires is not None or edit.expires_at is not None:
        was["expires_at"] = job.expires_at
    return lambda _: {str(Effect.EDITED): [job.id], "was": was}


_OPTIONS = tuple(each for each in EnqueueRequest.__struct_fields__ if each not in ("task", "args", "kwargs"))


class _Tasks:
    """Tasks by name: the tasks that the app declares, and the tasks that live workers know."""

    def __init__(self, store: Store, clock: Clock, registry: Registry | None) -> None:
        self._store, self._clock = store, clock
        self._declared = {} if registry is None else registry.tasks
        self._offered: frozenset[str] | None = None

    async def job(self, request: EnqueueRequest, place: int, count: int) -> NewJob:
        """The job of one of several requests."""
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
            processes = await self._store.processes.all(at=self._clock.stamp())
            workers = [each for each in processes if each.alive and each.role is Role.WORKER]
            self._offered = frozenset(task for each in workers for task in each.tasks)
        if name not in self._offered:
            raise UnknownTask(name, (*self._declared, *self._offered))
        return _unknown(name)


def _handles(jobs: Sequence[NewJob], done: Sequence[Inserted]) -> list[JobHandle[Any]]:
    return [
        JobHandle(id=one.job_id, task=job.task, queue=job.queue, created=one.created)
        for job, one in zip(jobs, done, strict=True)
    ]
