"""Inside a child: one job after the other, in the main thread, where signals and C code expect to be."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import msgspec

from mainspring.clock import SystemClock
from mainspring.model.job import Claim
from mainspring.model.run import Discarded, Failed, Outcome, Settled, Snoozed, Succeeded
from mainspring.tasks.context import Context, ContextEffects, Suspended
from mainspring.tasks.payload import decode, encode_result
from mainspring.tasks.retry import Retry
from mainspring.tasks.signature import Signature
from mainspring.tasks.task import Task
from mainspring.telemetry.run_fields import running
from mainspring.telemetry.traces import Tracer
from mainspring.worker.children.child_channel import ChildChannel, HandlerEnded, Ready, StartRun, Tell
from mainspring.worker.children.child_reaper import has_children
from mainspring.worker.children.process_limits import capped
from mainspring.worker.effects import Settling
from mainspring.worker.handlers import context_of
from mainspring.worker.outcomes import is_a, outcome_of
from mainspring.worker.run_reports import RunLogger

_OUR_FRAMES = 3

Handler = tuple[Callable[..., object], Signature, Retry]


class RunsEffects(ContextEffects, Protocol):
    """A run's effects, and its last word about how it ended."""

    def end(self, outcome: Outcome) -> Outcome: ...
    async def aend(self, outcome: Outcome) -> Outcome: ...


MakeEffects = Callable[[Claim, Settling, int], RunsEffects]
"""Of a claim, its run, and the bytes that a result may have."""


class Runner:
    """Runs what comes over the channel until its other end closes."""

    def __init__(
        self,
        channel: ChildChannel,
        find: Callable[[StartRun], Handler],
        effects: MakeEffects,
        tracer: Tracer | None = None,
    ) -> None:
        self._channel = channel
        self._tracer = tracer
        self._find = find
        self._effects = effects
        self._looper = Looper()

    def serve(self) -> None:
        """Say that we are ready, and work."""
        signal.signal(signal.SIGTERM, self._terminated)
        self._channel.listen()
        self._channel.send(Ready())
        while (run := self._channel.next_run()) is not None:
            ended = self._ended(run)
            _flush()  # what the handler printed comes before what is logged about its end
            self._channel.send(ended)
        self._looper.close()

    def _ended(self, run: StartRun) -> HandlerEnded:
        retry, clean = Retry(), True
        try:
            function, signature, retry = self._find(run)
            with capped(run.memory, run.processes):
                # In a context of its own: what one run sets there is not the next one's.
                within = contextvars.copy_context().run
                outcome, clean = within(self._ran, run, function, signature, retry)
        except BaseException as error:  # noqa: BLE001 - a SystemExit may come at any moment, by SIGTERM
            outcome, clean = outcome_of(error, retry, frames_to_hide=_OUR_FRAMES), False
        return _frame(outcome, clean=clean and not has_children())

    def _ran(
        self, run: StartRun, function: Callable[..., object], signature: Signature, retry: Retry
    ) -> tuple[Outcome, bool]:
        running.set(run.claim)
        if self._tracer is not None and run.claim.trace is not None:
            self._tracer.enter(run.claim.trace)
        effects = None
        if signature.wants_context:
            effects = self._effects(run.claim, _Settling(self._channel), run.result_bytes)
        context = None if effects is None else self._context(run, effects)

        def call() -> object:
            return signature.call(function, context, *decode(run.claim.payload))

        if signature.is_async:
            return self._looper.run(self._awaited(call, effects, run, retry))
        outcome, clean = _outcome(lambda: encode_result(call(), run.result_bytes), retry)
        return (outcome if effects is None else effects.end(outcome)), clean

    def _context(self, run: StartRun, effects: RunsEffects) -> Context:
        said = _Said(self._channel)
        return context_of(
            run.claim,
            self._channel.cancelled,
            log=RunLogger(run.claim, said, SystemClock()),
            on_progress=said.progress,
            effects=effects,
            period=run.period,
        )

    async def _awaited(
        self, call: Callable[[], object], effects: RunsEffects | None, run: StartRun, retry: Retry
    ) -> tuple[Outcome, bool]:
        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())

        def cancel() -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        self._channel.on_cancel = cancel
        if self._channel.cancelled.is_set():
            task.cancel()
        try:
            returned = await cast("Any", call())
            outcome, clean = _outcome(lambda: encode_result(returned, run.result_bytes), retry)
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            outcome, clean = _raised(error, retry)
        finally:
            self._channel.on_cancel = lambda: None
        return (outcome if effects is None else await effects.aend(outcome)), clean

    def _terminated(self, number: int, frame: object) -> None:
        # A plain function that did not look at ctx.cancelled gets to clean up; one that is not in
        # Python code just now does not, and is killed a little later.
        raise SystemExit(128 + number)


class _Said:
    """What a handler says of its run goes to the worker, which waits for it and writes it."""

    def __init__(self, channel: ChildChannel) -> None:
        self._channel = channel

    def add(self, line: str) -> None:
        self._channel.send(Tell(name="log", body=line.encode("utf-8", "replace")))

    def progress(self, fraction: float, note: str) -> None:
        self._channel.send(Tell(name="progress", body=msgspec.json.encode((fraction, note))))


class _Settling:
    """Reports to the worker that the claim may be gone from the store at any moment, and that this is no
    loss."""

    def __init__(self, channel: ChildChannel) -> None:
        self._channel, self._settling = channel, False

    @property
    def settling(self) -> bool:
        return self._settling

    @settling.setter
    def settling(self, value: bool) -> None:
        self._settling = value
        self._channel.send(Tell(name="settling", body=b"1" if value else b""))


def _outcome(work: Callable[[], bytes | None], retry: Retry) -> tuple[Outcome, bool]:
    """How it ended, and whether the child is as good as before."""
    try:
        return Succeeded(result=work()), True
    except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
        return _raised(error, retry)


def _raised(error: BaseException, retry: Retry) -> tuple[Outcome, bool]:
    clean = (is_a(error, Exception) or is_a(error, Suspended)) and not is_a(error, MemoryError)
    return outcome_of(error, retry, frames_to_hide=_OUR_FRAMES), clean


def _frame(outcome: Outcome, *, clean: bool) -> HandlerEnded:
    match outcome:
        case Succeeded():
            return HandlerEnded(result=outcome.result, clean=clean)
        case Settled():
            return HandlerEnded(result=outcome.result, settled=True, clean=clean)
        case Snoozed():
            return HandlerEnded(snoozed=outcome.delay, awaits=outcome.awaits, clean=clean)
        case Discarded():
            return HandlerEnded(failure=outcome.failure, discarded=True, clean=clean)
        case Failed():
            return HandlerEnded(
                failure=outcome.failure,
                permanent=outcome.permanent,
                retry_after=outcome.retry_after,
                rule=outcome.rule,
                clean=clean,
            )
        case _:
            raise TypeError(f"a handler cannot end as {outcome}")


def found_by_name(run: StartRun) -> Handler:
    """The handler of a task that is to be found at the top of a module."""
    module, _, path = (run.function or "").partition(":")
    found: object = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if isinstance(found, Task):
        return found.function, found.signature, found.retry
    function = cast("Callable[..., object]", found)
    return function, Signature.of(function, run.claim.task), Retry()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()


P = ParamSpec("P")
T = TypeVar("T")


class Looper:
    """Runs one coroutine after the other: with a loop for each, a child gets an eighth less done. A task or a
    thread that is left at work ends with its loop, before its job has ended."""

    def __init__(self) -> None:
        self._open: tuple[asyncio.Runner, _Threads] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the context of the caller, whose changes of it are not the next one's."""
        if self._open is None:
            self._open = asyncio.Runner(), _Threads()
        runner, threads = self._open
        runner.get_loop().set_default_executor(threads)
        alone = False
        try:
            answer = runner.run(work, context=contextvars.copy_context())
            alone = not asyncio.all_tasks(runner.get_loop()) and not threads.busy
            return answer
        finally:
            if not alone:
                self.close()

    def close(self) -> None:
        """End the loop, and wait for what is left on it."""
        if self._open is not None:
            runner, _ = self._open
            self._open = None
            runner.close()


class _Threads(ThreadPoolExecutor):
    """Knows which calls have not ended."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self.busy: set[Future[Any]] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = super().submit(fn, *args, **kwargs)
        self.busy.add(future)
        future.add_done_callback(self.busy.discard)
        return future
