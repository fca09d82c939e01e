"""The decorator that turns functions into tasks, typed so that `enqueue` is checked like the call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, TypeVar, overload

from mainspring.declare.context import Context
from mainspring.declare.isolation import Isolation
from mainspring.declare.options import Retry
from mainspring.declare.registry import Registry
from mainspring.declare.sender import Sender
from mainspring.declare.signature import Signature
from mainspring.declare.task import ContextTask, PlainTask, Task
from mainspring.duration import Duration
from mainspring.model.job import DEFAULT_QUEUE

P = ParamSpec("P")
R = TypeVar("R")


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
    isolate: bool | Isolation = False

    # A type checker can take the context out of first place only; the worker finds it anywhere.
    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> ContextTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> PlainTask[P, R]: ...
    def __call__(self, function: Callable[..., R], /) -> Task[..., R]:
        kind = ContextTask if Signature.of(function, self.name or "").context_is_first else PlainTask
        task: Task[..., R] = kind(
            function,
            sender=self.sender,
            name=self.name,
            retry=self.retry,
            timeout=self.timeout,
            queue=self.queue,
            priority=self.priority,
            isolate=self.isolate,
        )
        self.registry.add_task(task)
        return task


class TaskDecorator:
    """`@app.task`, `@app.task()` and `@app.task(retry=Retry(attempts=5))`."""

    def __init__(self, registry: Registry, sender: Sender) -> None:
        self._registry, self._sender = registry, sender

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> ContextTask[P, R]: ...
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
            isolate=isolate,
        )
        return configured if function is None else configured(function)
