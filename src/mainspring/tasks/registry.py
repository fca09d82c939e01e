"""The tasks and schedules declared in one app, by name, and the decorator that declares tasks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from mainspring.duration import Duration
from mainspring.errors import InvalidArgument, UnknownTask
from mainspring.model.job import DEFAULT_QUEUE
from mainspring.tasks.context import Context
from mainspring.tasks.enqueue import Sender
from mainspring.tasks.limits import Limit, QueueRules
from mainspring.tasks.retry import Retry
from mainspring.tasks.schedule import ScheduleDeclaration
from mainspring.tasks.signature import Signature
from mainspring.tasks.task import AsyncContextTask, AsyncTask, ContextTask, Isolation, PlainTask, Task
from mainspring.tasks.unique import Unique

P = ParamSpec("P")
R = TypeVar("R")
_KINDS: dict[tuple[bool, bool], type[Task[..., Any]]] = {
    (False, False): PlainTask,
    (False, True): AsyncTask,
    (True, False): ContextTask,
    (True, True): AsyncContextTask,
}
"""By whether the context comes first, and whether it is a coroutine function."""


class Registry:
    """Each name is declared once: a second declaration is an error, not a replacement."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task[..., object]] = {}
        self._schedules: dict[str, ScheduleDeclaration] = {}
        self._queues: dict[str, QueueRules] = {}
        self._shell: set[str] = set()
        self.tasks: Mapping[str, Task[..., object]] = MappingProxyType(self._tasks)
        self.schedules: Mapping[str, ScheduleDeclaration] = MappingProxyType(self._schedules)
        self.queues: Mapping[str, QueueRules] = MappingProxyType(self._queues)

    def add_task(self, task: Task[..., object]) -> None:
        """Take the task's name, or refuse one that is taken."""
        if task.name in self._tasks:
            raise InvalidArgument("task.name", task.name, "a name no other task has; pass name=…")
        self._tasks[task.name] = task
        if task.needs_shell:
            self._shell.add(task.name)

    def add_schedule(self, schedule: ScheduleDeclaration) -> None:
        """Take the schedule's name, or refuse one that is taken, or whose task is not declared here."""
        if schedule.name in self._schedules:
            raise InvalidArgument("schedule.name", schedule.name, "a name no other schedule has")
        self.get(schedule.task.name)
        self._schedules[schedule.name] = schedule

    def add_queue(self, name: str, rules: QueueRules) -> None:
        """Take the rules of a queue, once."""
        if name in self._queues:
            raise InvalidArgument("queue.name", name, "a queue that has no rules yet")
        self._queues[name] = rules

    @property
    def has_limits(self) -> bool:
        """Whether any job of this app may have to wait for a limit."""
        return bool(self._queues) or any(task.limits for task in self._tasks.values())

    def offered(self, *, shell: bool) -> tuple[str, ...]:
        """The names of the tasks that a worker takes, which starts programs or does not."""
        if shell or not self._shell:
            return tuple(self.tasks)
        return tuple(name for name in self.tasks if name not in self._shell)

    def get(self, name: str) -> Task[..., object]:
        """The task of that name; UnknownTask when none is declared here."""
        try:
            return self._tasks[name]
        except KeyError:
            raise UnknownTask(name, tuple(self._tasks)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredDecorator:
    """The decorator once its options are known: `@app.task(queue="mail")`."""

    registry: Registry
    sender: Sender
    name: str | None = None
    retry: Retry | None = None
    timeout: Duration | None = None
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    unique: Unique | None = None
    limits: Sequence[Limit] = ()
    expires: Duration | None = None
    isolate: bool | Isolation = False

    # A type checker can take the context out of first place only; the worker finds it anywhere. The first
    # that fits is right: a coroutine is awaited, so the result is what it returns then.
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncContextTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> ContextTask[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...
    def __call__(self, function: Callable[..., object], /) -> Task[..., object]:
        signature = Signature.of(function, self.name or "")
        kind: type[Task[..., object]] = _KINDS[signature.context_is_first, signature.is_async]
        task = kind(
            function,
            sender=self.sender,
            name=self.name,
            retry=self.retry,
            timeout=self.timeout,
            queue=self.queue,
            priority=self.priority,
            unique=self.unique,
            limits=self.limits,
            queues=self.registry.queues,
            expires=self.expires,
            isolate=self.isolate,
        )
        self.registry.add_task(task)
        return task


class TaskDecorator:
    """`@app.task`, `@app.task()` and `@app.task(retry=Retry(attempts=5))`."""

    def __init__(self, registry: Registry, sender: Sender) -> None:
        self._registry, self._sender = registry, sender

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncContextTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> ContextTask[P, R]: ...
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...
    @overload
    def __call__(
        self,
        /,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        unique: Unique | None = None,
        limits: Sequence[Limit] = (),
        expires: Duration | None = None,
        isolate: bool | Isolation = False,
    ) -> ConfiguredDecorator: ...
    def __call__(
        self,
        function: Callable[..., object] | None = None,
        /,
        *,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        unique: Unique | None = None,
        limits: Sequence[Limit] = (),
        expires: Duration | None = None,
        isolate: bool | Isolation = False,
    ) -> Task[..., object] | ConfiguredDecorator:
        configured = ConfiguredDecorator(
            registry=self._registry,
            sender=self._sender,
            name=name,
            retry=retry,
            timeout=timeout,
            queue=queue,
            priority=priority,
            unique=unique,
            limits=limits,
            expires=expires,
            isolate=isolate,
        )
        return configured if function is None else configured(function)
