"""Tasks: a function with its options, how its jobs are made, and the child process that it may ask for."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from mainspring.duration import Duration, duration, format_duration
from mainspring.errors import InvalidArgument
from mainspring.model.job import DEFAULT_QUEUE, Key, NewJob, OnDuplicateOption, ScopeOption
from mainspring.model.limit import LimitKey
from mainspring.tasks import payload
from mainspring.tasks.checks import valid_attempts, valid_name, valid_priority
from mainspring.tasks.context import Context
from mainspring.tasks.enqueue import JobHandle, Sender
from mainspring.tasks.limits import Limit, QueueRules, limit_keys, valid_limits
from mainspring.tasks.retry import Retry, valid_retry
from mainspring.tasks.signature import Signature
from mainspring.tasks.unique import (
    Unique,
    valid_key,
    valid_unique,
    with_options,
)

_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(kB|MB|GB|KiB|MiB|GiB)", re.ASCII)
_LEAST_MEMORY, _MOST_MEMORY = 64 * 10**6, 2**50
_MOST_PROCESSES = 100_000
_MOST_RUNS = 1_000_000
_LONGEST_GRACE = timedelta(hours=1)
P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
_SHORTEST_TIMEOUT = timedelta(milliseconds=1)
_SHORTEST_LIFE = timedelta(milliseconds=1)
_FIRST_YEAR, _LAST_YEAR = 2000, 2100


@dataclass(frozen=True, slots=True, init=False)
class Isolation:
    """How a task runs in a process of its own.

    `memory` caps what the process may allocate, the interpreter and the app included; beyond it the
    handler gets a MemoryError. `processes` caps how many processes and threads its tree may have.
    `grace` is how long a handler may take to end after the stop was requested, before signals follow. After
    so many `runs` the process is replaced by a fresh one.
    """

    memory: int | None
    processes: int | None
    grace: timedelta
    runs: int

    def __init__(
        self,
        memory: str | int | None = None,
        processes: int | None = None,
        grace: Duration = "2s",
        runs: int = 10_000,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "memory", None if memory is None else _size(memory, "isolate.memory"))
        if processes is not None:
            _check_whole(processes, "isolate.processes", least=2, most=_MOST_PROCESSES)
        set_field(self, "processes", processes)
        set_field(self, "grace", duration(grace, "isolate.grace"))
        if self.grace > _LONGEST_GRACE:
            raise InvalidArgument("isolate.grace", grace, f"at most {format_duration(_LONGEST_GRACE)}")
        _check_whole(runs, "isolate.runs", least=1, most=_MOST_RUNS)
        set_field(self, "runs", runs)


def valid_isolation(isolate: bool | Isolation) -> Isolation | None:
    """The isolation that the task asks for; None runs it in the worker itself."""
    if isinstance(isolate, Isolation):
        return isolate
    if not isinstance(isolate, bool):
        raise InvalidArgument("task.isolate", isolate, 'True, False or Isolation(memory="512MB")')
    return Isolation() if isolate else None


def _size(value: str | int, field: str) -> int:
    size = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (part := _SIZE.fullmatch(value)):
        size = int(float(part[1]) * _UNITS[part[2]])
    if size is None or not _LEAST_MEMORY <= size <= _MOST_MEMORY:
        least = _LEAST_MEMORY // 10**6
        raise InvalidArgument(
            field, value, f'a size such as "512MB" or "2GiB", or a number of bytes; at least {least}MB'
        )
    return size


def _check_whole(value: int, field: str, *, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidArgument(field, value, f"a whole number from {least} to {most}")


class Task(Generic[P, R_co]):
    """A function that can be enqueued. P is what callers pass: its parameters without the context. R is
    the result of its jobs; for a coroutine function, the value that awaiting it gives.

    The classes below differ in how the task is called directly.
    """

    needs_shell: bool = False
    """Whether only a worker that starts programs may take it."""
    runs_user_code: bool = True
    """Whether its run may crash the worker. If it cannot, its job is not an orphaned job after a crash."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        sender: Sender,
        name: str | None = None,
        retry: Retry | None = None,
        timeout: Duration | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        unique: Unique | None = None,
        limits: Sequence[Limit] = (),
        queues: Mapping[str, QueueRules] = MappingProxyType({}),
        expires: Duration | None = None,
        isolate: bool | Isolation = False,
    ) -> None:
        """The default name is that of the function, without its module: a module is called `__main__` in the
        process that starts it, and has its own name in all others."""
        self.name = valid_name(name if name is not None else getattr(function, "__name__", ""), "task.name")
        self.function = function
        self.signature = Signature.of(function, self.name)
        self.retry = valid_retry(retry)
        self.timeout = None if timeout is None else duration(timeout, "task.timeout", least=_SHORTEST_TIMEOUT)
        self.queue = valid_name(queue, "task.queue")
        self.priority = valid_priority(priority, "task.priority")
        self.isolation = valid_isolation(isolate)
        self.attempts = self.retry.attempts
        self.unique = valid_unique(unique, self.signature)
        self.limits = valid_limits(limits, self.signature)
        self._queues = queues
        self.expires = None if expires is None else duration(expires, "task.expires", least=_SHORTEST_LIFE)
        self._expires_at: datetime | None = None
        self._sender = sender
        self._delay = timedelta()
        self._run_at: datetime | None = None
        self._key: str | None = None
        self._tx: object | None = None

    def check(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """Raise InvalidArgument unless it can be called with these."""
        self.signature.check(args, kwargs)

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJob:
        """A job for this call that is not enqueued yet: for batches."""
        if self._tx is not None:
            raise InvalidArgument(
                "tx", type(self._tx), "tx= where the batch is enqueued: enqueue_many(jobs, tx=…)"
            )
        return self._job(args, kwargs)

    def _job(self, args: Sequence[object], kwargs: Mapping[str, object]) -> NewJob:
        self.check(args, kwargs)
        return NewJob(
            task=self.name,
            payload=payload.encode(args, kwargs, field=self.name),
            queue=self.queue,
            priority=self.priority,
            run_at=self._run_at,
            delay=self._delay if self.unique is None else self.unique.debounce or self._delay,
            max_attempts=self.attempts,
            unique=None if self.unique is None else self._unique_key(self.unique, args, kwargs),
            limit_keys=self.limit_keys(self.queue, args, kwargs) if self.limits or self._queues else (),
            expires=self.expires,
            expires_at=self._expires_at,
        )

    def limit_keys(
        self, queue: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[LimitKey, ...]:
        """The limits of one call in a queue: the task's own, and the queue's."""
        limits = self.limits_in(queue)
        return limit_keys(limits, self.signature, args, kwargs) if limits else ()

    def limits_in(self, queue: str) -> tuple[Limit, ...]:
        """The task's own limits, and the queue's."""
        rules = self._queues.get(queue)
        return self.limits if rules is None else (*self.limits, *rules.limits)

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Enqueue this call; when it returns, the job is stored. Blocks."""
        return self._sender.enqueue_many([self._job(args, kwargs)], tx=self._tx)[0]

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Enqueue this call; when it returns, the job is stored."""
        [handle] = await self._sender.aenqueue_many([self._job(args, kwargs)], tx=self._tx)
        return handle

    def using(
        self,
        *,
        delay: Duration | None = None,
        run_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        attempts: int | None = None,
        key: str | None = None,
        scope: ScopeOption | None = None,
        period: Duration | None = None,
        on_duplicate: OnDuplicateOption | None = None,
        debounce: Duration | None = None,
        expires: Duration | datetime | None = None,
        tx: object | None = None,
    ) -> Self:
        """The same task with other options for the next call: `task.using(delay="10m").enqueue(…)`.

        With a `key` no second job of that key is made; the last four options are those of `Unique`. With
        `tx`, a connection of yours, the job is part of its transaction.
        """
        if delay is not None and run_at is not None:
            raise InvalidArgument("run_at", run_at, "either delay or run_at, not both")
        other = copy.copy(self)
        if delay is not None:
            other._delay, other._run_at = duration(delay, "delay", least=timedelta()), None
        if run_at is not None:
            other._delay, other._run_at = timedelta(), _valid_instant(run_at, "run_at")
        if priority is not None:
            other.priority = valid_priority(priority)
        if queue is not None:
            other.queue = valid_name(queue, "queue")
        if attempts is not None:
            other.attempts = valid_attempts(attempts, "attempts")
        if key is not None:
            other._key = valid_key(key)
            other.unique = self.unique or Unique()
        other.unique = with_options(
            other.unique, scope=scope, period=period, on_duplicate=on_duplicate, debounce=debounce
        )
        if expires is not None:
            other._expire(expires)
        if tx is not None:
            other._tx = tx
        return other

    def _expire(self, expires: Duration | datetime) -> None:
        if isinstance(expires, datetime):
            self.expires, self._expires_at = None, _valid_instant(expires, "expires")
        else:
            self.expires, self._expires_at = duration(expires, "expires", least=_SHORTEST_LIFE), None

    @property
    def expires_at(self) -> datetime | None:
        """The instant that `using(expires=…)` gave as its jobs' deadline."""
        return self._expires_at

    @property
    def delay(self) -> timedelta:
        """How long after enqueuing a job may start, as `using(delay=…)` sets it."""
        return self._delay

    @property
    def single(self) -> dict[str, object]:
        """Options that `using` gave and that fit one job alone, by name."""
        given = {"run_at": self._run_at, "key": self._key, "expires": self._expires_at, "tx": self._tx}
        return {name: value for name, value in given.items() if value is not None}

    def _unique_key(self, unique: Unique, args: Sequence[object], kwargs: Mapping[str, object]) -> Key:
        return unique.key(self.name, self.signature, args, kwargs, named=self._key)

    def __repr__(self) -> str:
        return f"<Task {self.name}>"


class PlainTask(Task[P, R_co]):
    """A task whose function takes exactly the arguments of the caller."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function directly, as if it were not decorated."""
        return cast("R_co", self.function(*args, **kwargs))


class AsyncTask(Task[P, R_co]):
    """The same for a coroutine function."""

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call the function directly, as if it were not decorated."""
        return cast("Coroutine[Any, Any, R_co]", self.function(*args, **kwargs))


class ContextTask(Task[P, R_co]):
    """A task whose function takes the context first."""

    def __call__(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function directly. Pass a context yourself: only a worker provides one."""
        return cast("R_co", self.function(context, *args, **kwargs))


class AsyncContextTask(Task[P, R_co]):
    """The same for a coroutine function."""

    def __call__(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call the function directly. Pass a context yourself: only a worker provides one."""
        return cast("Coroutine[Any, Any, R_co]", self.function(context, *args, **kwargs))


def _valid_instant(instant: datetime, field: str) -> datetime:
    if not isinstance(instant, datetime) or instant.utcoffset() is None:
        raise InvalidArgument(field, instant, "a datetime with a time zone")
    if not _FIRST_YEAR <= instant.year <= _LAST_YEAR:
        raise InvalidArgument(field, instant, f"a year from {_FIRST_YEAR} to {_LAST_YEAR}")
    return instant.astimezone(UTC)
