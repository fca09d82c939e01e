"""What a handler gets: its context, and the exceptions with which it ends its run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Final, ParamSpec, Protocol, TypeVar, overload

from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument, UsageError
from mainspring.model.job import trace_id
from mainspring.model.schedule import Period
from mainspring.model.value import Value
from mainspring.model.workflow import NewWorkflow
from mainspring.tasks.checks import valid_name
from mainspring.tasks.enqueue import JobHandle

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
_SHORTEST_WAIT = timedelta(milliseconds=1)
LONGEST_NOTE = 200
_SHORTEST_SNOOZE = timedelta(seconds=1)
"""With shorter delays a job that only waits would keep a worker busy."""


class Connection(Protocol):
    """The connection that `with ctx.transaction()` gives to a plain function: the methods of asyncpg,
    blocking."""

    def execute(self, query: str, *args: object) -> str: ...
    def executemany(self, query: str, args: Iterable[Sequence[object]]) -> None: ...
    def fetch(self, query: str, *args: object) -> list[Any]: ...
    def fetchrow(self, query: str, *args: object) -> Any: ...
    def fetchval(self, query: str, *args: object) -> Any: ...


class HandlerTransaction(Protocol):
    """The context manager that `ctx.transaction()` returns, for `with` and `async with`. On PostgreSQL `async
    with` gives a connection of asyncpg, on SQLite one with the same five methods as the blocking one."""

    result: object
    """The result of the job; may be set until the block ends."""

    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __enter__(self) -> Connection: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class OnceStep(Protocol):
    """The context manager that `ctx.once()` returns: its value says whether this is the first time."""

    async def __aenter__(self) -> bool: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Durable(Protocol):
    """What is behind `ctx.step()`, `ctx.sleep()`, `ctx.wait_event()` and their awaited twins; the arguments
    are checked already. `step_here` calls the step of a plain handler on the handler's own thread."""

    async def step(
        self,
        context: object,
        name: str,
        function: Callable[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any: ...
    def step_here(
        self,
        context: object,
        name: str,
        function: Callable[..., object],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Any: ...
    async def sleep(self, length: timedelta, name: str | None) -> None: ...
    async def wait_event(self, name: str, limit: timedelta | None, default: object) -> Any: ...
    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T: ...


class ContextEffects(Protocol):
    """One run's."""

    @property
    def durable(self) -> Durable: ...

    def transaction(self, result: object) -> HandlerTransaction: ...
    def complete(self, tx: object, result: object) -> None: ...
    async def acomplete(self, tx: object, result: object) -> None: ...
    def once(self, name: str, tx: object | None) -> OnceStep: ...


class _Raise:
    """No default."""

    def __repr__(self) -> str:
        return "..."


RAISE: Final = _Raise()
"""In place of a default: a wait that times out raises."""


class Declared(Protocol[P, R_co]):
    """A task, as a step needs it."""

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]: ...


def valid_step(name: str, function: object) -> None:
    """Raise InvalidArgument unless these name a step and what it does."""
    valid_name(name, "name")
    if not callable(function) and not hasattr(function, "signature"):
        raise InvalidArgument(
            "function",
            function,
            "a function, a coroutine function or a task, then its arguments: no call of it",
        )


def valid_length(length: Duration, name: str | None) -> tuple[timedelta, str | None]:
    """The checked arguments of `sleep`."""
    return duration(length, "length"), None if name is None else valid_name(name, "name")


def valid_wait(name: str, timeout: Duration | None) -> tuple[str, timedelta | None]:
    """The checked arguments of `wait_event`."""
    limit = None if timeout is None else duration(timeout, "timeout", least=_SHORTEST_WAIT)
    return valid_name(name, "name"), limit


class Log(Protocol):
    """A logger whose lines carry the job; the standard library's loggers and adapters are such."""

    def debug(self, msg: object, /, *args: object, extra: Mapping[str, object] | None = None) -> None: ...
    def info(self, msg: object, /, *args: object, extra: Mapping[str, object] | None = None) -> None: ...
    def warning(self, msg: object, /, *args: object, extra: Mapping[str, object] | None = None) -> None: ...
    def error(self, msg: object, /, *args: object, extra: Mapping[str, object] | None = None) -> None: ...
    def exception(self, msg: object, /, *args: object, extra: Mapping[str, object] | None = None) -> None: ...


class StopSignal(Protocol):
    """Set once the run should end; a threading or asyncio Event is such."""

    def is_set(self) -> bool: ...


class Context(Value, frozen=True, kw_only=True):
    """The run of a handler. The worker passes it to the parameter that is annotated with this class."""

    job_id: int
    task: str
    queue: str
    attempt: int
    """Counted from 1."""
    max_attempts: int
    fence: int
    """Rises with every claim of a job: for `UPDATE … WHERE fence < :fence` in your own tables."""
    log: Log
    stop: StopSignal
    schedule_id: int | None = None
    slot: datetime | None = None
    """The nominal instant of the schedule that made this job; None for a job that no schedule made."""
    period: Period | None = None
    """What the job stands for: from the slot before up to its own, further back where missed slots were
    combined into it; None for a job that no schedule made."""
    on_progress: Callable[[float, str], None] | None = None
    """Called with the progress: by a worker, not in a context that a test made."""
    effects: ContextEffects | None = None
    """Carries out the methods below; only a worker provides it."""
    trace: str | None = None
    """The trace that the run belongs to, as W3C headers write it; None without tracing."""
    enqueued_at: datetime | None = None
    """When the job was enqueued, by the database's clock; None in a context made by hand."""
    database_id: str = ""
    """The random id of the database that has the job; empty in a context made by hand."""

    @property
    def trace_id(self) -> str | None:
        """The id that all spans of the run's trace share: 32 hex digits."""
        return trace_id(self.trace)

    @property
    def token(self) -> str:
        """An idempotency key: the same for every attempt at this job, and for no other work of this
        or of any other database."""
        # A number alone comes again where commits were lost: after a failover, or in a restored copy.
        subject, at = f"job|{self.job_id}", self.enqueued_at
        if self.schedule_id is not None and self.slot is not None:
            subject, at = str(self.schedule_id), self.slot
        instant = "" if at is None else at.astimezone(UTC).isoformat()
        return hashlib.sha256(f"{self.database_id}|{subject}|{instant}".encode()).hexdigest()

    @property
    def cancelled(self) -> bool:
        """True once the run should end: the job was cancelled, its timeout is over, its lease was lost, or
        the worker stops."""
        return self.stop.is_set()

    def progress(self, fraction: float, note: str = "") -> None:
        """Report how far the run is, from 0 to 1, with a note if you like. It costs almost nothing: the
        newest report is written, at most once a second."""
        number = not isinstance(fraction, bool) and isinstance(fraction, int | float)
        if not number or not 0 <= fraction <= 1:
            raise InvalidArgument("progress.fraction", fraction, "a number from 0 to 1")
        if not isinstance(note, str) or len(note) > LONGEST_NOTE or not _can_be_stored(note):
            expected = f"text of at most {LONGEST_NOTE} characters, without NUL and lone surrogates"
            raise InvalidArgument("progress.note", note, expected)
        if self.on_progress is not None:
            self.on_progress(float(fraction), note)

    def transaction(self, *, result: object = None) -> HandlerTransaction:
        """`async with ctx.transaction() as connection:` (or `with`, in a plain function) commits what the
        body writes together with the job's success, or nothing of both: ClaimLost is raised if another
        run has the job by now. `result` is the result of the job; the handler's return value is not kept."""
        return self._effects().transaction(result)

    def complete(self, *, tx: object, result: object = None) -> None:
        """Write the job's success in a transaction of your own, on your own connection: it is done when,
        and only if, you commit. Raises ClaimLost if another run has the job by now."""
        self._effects().complete(tx, result)

    async def acomplete(self, *, tx: object, result: object = None) -> None:
        """The same for an async connection."""
        await self._effects().acomplete(tx, result)

    def once(self, name: str, *, tx: object | None = None) -> OnceStep:
        """`async with ctx.once("charge") as first:` (or `with`) says whether no run of this job has done
        this step yet, and records it when the body ends without an error. Inside `ctx.transaction()`, or
        with `tx=`, the record is part of that transaction."""
        return self._effects().once(valid_name(name, "name"), tx)

    @overload
    def step(self, name: str, function: Declared[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def step(
        self, name: str, function: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    def step(self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def step(self, name: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`paid = ctx.step("charge", charge, order)`: call the function and record what it returns, as JSON,
        under this name; a later run of this job gets the record instead. The function may be a task: then
        its function is called, here and now. For plain handlers: a plain function is called on this thread,
        a coroutine function runs on the worker's event loop."""
        valid_step(name, function)
        return self._effects().durable.step_here(self, name, function, args, kwargs)

    @overload
    async def astep(self, name: str, function: Declared[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    async def astep(
        self, name: str, function: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...
    @overload
    async def astep(self, name: str, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R: ...
    async def astep(self, name: str, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """`paid = await ctx.astep("charge", charge, order)`: the same in a coroutine. A plain function runs
        in a thread."""
        valid_step(name, function)
        return await self._effects().durable.step(self, name, function, args, kwargs)

    def sleep(self, length: Duration, *, name: str | None = None) -> None:
        """`ctx.sleep("3d")`: end this run, and go on from here in another, when that time has passed since
        the first call. No worker waits meanwhile. Sleeps without a name are told apart by their order."""
        asked, durable = valid_length(length, name), self._effects().durable
        durable.call(lambda: durable.sleep(*asked), instead="`await ctx.asleep(…)`")

    async def asleep(self, length: Duration, *, name: str | None = None) -> None:
        """`await ctx.asleep("3d")`: the same in a coroutine."""
        await self._effects().durable.sleep(*valid_length(length, name))

    def wait_event(self, name: str, *, timeout: Duration | None = None, default: object = RAISE) -> Any:
        """`answer = ctx.wait_event("approved", timeout="7d")`: the payload that `app.send_event` sent to this
        job, or to all jobs, before or after this call. No worker waits meanwhile. After the timeout, which
        counts from the first call, it returns the default, or raises EventTimeout if there is none."""
        asked, durable = valid_wait(name, timeout), self._effects().durable
        return durable.call(lambda: durable.wait_event(*asked, default), instead="`await ctx.await_event(…)`")

    async def await_event(
        self,
        name: str,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109 - as users say it
        default: object = RAISE,
    ) -> Any:
        """`answer = await ctx.await_event("approved", timeout="7d")`: the same in a coroutine."""
        return await self._effects().durable.wait_event(*valid_wait(name, timeout), default)

    def _effects(self) -> ContextEffects:
        if self.effects is None:
            raise UsageError("only a worker can settle a job: this context was made by hand")
        return self.effects


def _can_be_stored(text: str) -> bool:
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


class Snooze(Exception):
    """`raise Snooze("10m")`: run the job again later. This uses no attempt, and is in the history of the
    job."""

    def __init__(self, delay: Duration) -> None:
        self.delay = duration(delay, "snooze", least=_SHORTEST_SNOOZE)
        super().__init__(delay)


class Suspended(BaseException):
    """How `ctx.sleep()` and `ctx.wait_event()` end a run that has to wait: the job is called again later, and
    no attempt is used. It is not an Exception, so that a handler's `except Exception` does not catch it."""

    def __init__(self, delay: timedelta, *, awaits: str | None = None) -> None:
        super().__init__("the run is suspended: let this pass")
        self.delay, self.awaits = delay, awaits


class Discard(Exception):
    """`raise Discard("the order was withdrawn")`: the job is of no use any more. It ends for good, without
    more attempts and without a dead letter; the reason is in its history."""

    def __init__(self, reason: str) -> None:
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidArgument("discard", reason, "a reason, for those who read the job's history")
        super().__init__(reason)


class Begin(BaseException):
    """The job goes on as a workflow: how the handler of one ends. Not for users, whose `except Exception`
    must not catch it."""

    def __init__(self, workflow: NewWorkflow) -> None:
        self.workflow = workflow
        super().__init__(workflow.definition.name)
