"""The decorator that turns functions into tasks, typed so that `enqueue` is checked like the call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from mainspring.declare.context import Context
from mainspring.declare.isolation import Isolation
from mainspring.declare.limits import Limit
from mainspring.declare.registry import Registry
from mainspring.declare.retry import Retry
from mainspring.declare.sender import Sender
from mainspring.declare.signature import Signature
from mainspring.declare.task import AsyncContextTask, AsyncTask, ContextTask, PlainTask, Task
from mainspring.declare.unique import Unique
from mainspring.duration import Duration
from mainspring.model.job import DEFAULT_QUEUE

P = ParamSpec("P")
R = TypeVar("R")

_KINDS: dict[tuple[bool, bool], type[Task[..., Any]]] = {
    (False, False): PlainTask,
    (False, True): AsyncTask,
    (True, False): ContextTask,
    (True, True): AsyncContextTask,
}
"""By whether the context comes first, and whether it is a coroutine function."""


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
