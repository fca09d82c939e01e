"""Putting jobs into their queues for somebody who has a task's name and plain values, and not its code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from mainspring.clock import Clock
from mainspring.declare.handle import JobHandle
from mainspring.declare.registry import Registry
from mainspring.declare.task import Task
from mainspring.duration import Duration
from mainspring.errors import InvalidArgument, UnknownTask
from mainspring.model.fleet import Role
from mainspring.model.job import NewJob
from mainspring.model.request import RequestKey
from mainspring.model.unique import Inserted
from mainspring.model.value import Value
from mainspring.store.ports import Store


class Wish(Value, frozen=True, kw_only=True):
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


_OPTIONS = tuple(each for each in Wish.__struct_fields__ if each not in ("task", "args", "kwargs"))


class Enqueuing:
    """Makes jobs of wishes. A task that the app declares is called as in Python: its signature, its limits,
    its defaults. One that only workers know is taken as it comes, and its run will tell."""

    def __init__(self, store: Store, clock: Clock, registry: Registry) -> None:
        self._store, self._clock, self._registry = store, clock, registry
        self._offered: frozenset[str] | None = None

    async def enqueue(
        self, wishes: Sequence[Wish], *, request: RequestKey | None = None
    ) -> tuple[list[JobHandle[Any]], bool]:
        """All or none. With a request, once: answers the handles, and whether it had been answered before."""
        jobs = [await self._job(each, place, len(wishes)) for place, each in enumerate(wishes)]
        if request is not None:
            answered = await self._store.queue.insert_once(request, jobs, at=self._clock.stamp())
            return _handles(jobs, answered.jobs), answered.again
        if any(each.unique is not None for each in jobs):
            return _handles(jobs, await self._store.queue.insert_unique(jobs, at=self._clock.stamp())), False
        ids = await self._store.queue.insert(jobs, at=self._clock.stamp())
        return _handles(jobs, [Inserted(job_id=each) for each in ids]), False

    async def _job(self, wish: Wish, place: int, count: int) -> NewJob:
        try:
            task = await self._task(wish.task)
            return task.using(**{each: getattr(wish, each) for each in _OPTIONS}).job(
                *wish.args, **wish.kwargs
            )
        except InvalidArgument as wrong:
            if count == 1:
                raise
            raise InvalidArgument(f"jobs.{place}.{wrong.field}", wrong.got, wrong.expected) from None

    async def _task(self, name: str) -> Task[..., Any]:
        if name in self._registry.tasks:
            return self._registry.tasks[name]
        if self._offered is None:
            members = await self._store.processes.all(at=self._clock.stamp())
            workers = [each for each in members if each.alive and each.role is Role.WORKER]
            self._offered = frozenset(task for each in workers for task in each.tasks)
        if name not in self._offered:
            raise UnknownTask(name, (*self._registry.tasks, *self._offered))
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

    def enqueue(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> NoReturn:
        raise NotImplementedError

    async def aenqueue(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> NoReturn:
        raise NotImplementedError


_NOBODY = _Nobody()
