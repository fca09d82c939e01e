"""Tasks: declared functions with their options."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Generic, ParamSpec, Self, TypeVar

from mainspring.declare import payload
from mainspring.declare.context import Context
from mainspring.declare.handle import JobHandle
from mainspring.declare.names import valid_name
from mainspring.declare.options import Retry, valid_attempts, valid_priority, valid_retry
from mainspring.declare.sender import Sender
from mainspring.declare.signature import Signature
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument
from mainspring.model.job import DEFAULT_QUEUE, NewJob

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

_SHORTEST_TIMEOUT = timedelta(milliseconds=1)
_FIRST_YEAR, _LAST_YEAR = 2000, 2100


class Task(Generic[P, R_co]):
    """A function that can be enqueued. P is what callers pass: its parameters without the context.

    How it is called directly depends on the context, and is said by the two kinds below.
    """

    def __init__(
        self,
        function: Callable[..., R_co],
        *,
        sender: Sender,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
    ) -> None:
        """Unless given, the name is the function's own, without its module: a module is called
        `__main__` in the process that starts it and otherwise in all others."""
        self.name = valid_name(name if name is not None else getattr(function, "__name__", ""), "task.name")
        self.function = function
        self.signature = Signature.of(function, self.name)
        self.retry = valid_retry(retry)
        self.timeout = None if timeout is None else duration(timeout, "task.timeout", least=_SHORTEST_TIMEOUT)
        self.queue = valid_name(queue, "task.queue")
        self.priority = valid_priority(priority, "task.priority")
        self.attempts = self.retry.attempts
        self._sender = sender
        self._delay = timedelta()
        self._run_at: datetime | None = None
        self._tx: object | None = None

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job for this call, not yet put anywhere: for batches."""
        if self._tx is not None:
            raise InvalidArgument(
                "tx", type(self._tx), "tx= where the batch is enqueued: enqueue_many(jobs, tx=…)"
            )
        return self._job(args, kwargs)

    def _job(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NewJob:
        self.signature.check(args, kwargs)
        return NewJob(
            task=self.name,
            payload=payload.encode(args, kwargs, field=self.name),
            queue=self.queue,
            priority=self.priority,
            run_at=self._run_at,
            delay=self._delay,
            max_attempts=self.attempts,
        )

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        """Put this call into its queue; when it returns, the job is stored. Blocks."""
        return self._sender.enqueue([self._job(args, kwargs)], tx=self._tx)[0]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle:
        """Put this call into its queue; when it returns, the job is stored."""
        [handle] = await self._sender.aenqueue([self._job(args, kwargs)], tx=self._tx)
        return handle

    def using(
        self,
        *,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        tx: object | None = None,
    ) -> Self:
        """The same task with other options for the next call: `task.using(delay="10m").enqueue(…)`. With
        `tx`, a connection of yours, the job is part of the transaction it is in."""
        if delay is not None and run_at is not None:
            raise InvalidArgument("run_at", run_at, "either delay or run_at, not both")
        other = copy.copy(self)
        if delay is not None:
            other._delay, other._run_at = duration(delay, "delay", least=timedelta()), None
        if run_at is not None:
            other._delay, other._run_at = timedelta(), _valid_instant(run_at)
        if priority is not None:
            other.priority = valid_priority(priority)
        if queue is not None:
            other.queue = valid_name(queue, "queue")
        if attempts is not None:
            other.attempts = valid_attempts(attempts, "attempts")
        if tx is not None:
            other._tx = tx
        return other

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


class PlainTask(Task[P, R_co]):
    """A task whose function is called with what callers pass, and nothing more."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function here and now, as if it had never been decorated."""
        return self.function(*args, **kwargs)


class ContextTask(Task[P, R_co]):
    """A task whose function takes the context first."""

    def __call__(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function here and now. Only a worker has a context to give: pass one yourself."""
        return self.function(context, *args, **kwargs)


def _valid_instant(run_at: datetime) -> datetime:
    if not isinstance(run_at, datetime) or run_at.utcoffset() is None:
        raise InvalidArgument("run_at", run_at, "a datetime with a time zone")
    if not _FIRST_YEAR <= run_at.year <= _LAST_YEAR:
        raise InvalidArgument("run_at", run_at, f"a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    return run_at.astimezone(UTC)
