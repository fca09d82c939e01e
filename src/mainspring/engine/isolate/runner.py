"""Inside a child: one job after the other, in the main thread, where signals and C code expect to be."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, cast

import msgspec

from mainspring.clock import SystemClock
from mainspring.engine.effects import Settling
from mainspring.engine.executor import context_of
from mainspring.engine.failures import is_a
from mainspring.engine.fields import running
from mainspring.engine.isolate.caps import capped
from mainspring.engine.isolate.family import has_children
from mainspring.engine.isolate.frames import Ended, Ready, Run, Tell
from mainspring.engine.isolate.line import Line
from mainspring.engine.isolate.looper import Looper
from mainspring.engine.outcomes import outcome_of
from mainspring.engine.runlog import RunLogger
from mainspring.model.job import Claim
from mainspring.model.run import Discarded, Failed, Outcome, Settled, Snoozed, Succeeded
from mainspring.tasks.context import Context, ContextEffects, Suspended
from mainspring.tasks.payload import decode, encode_result
from mainspring.tasks.retry import Retry
from mainspring.tasks.signature import Signature
from mainspring.tasks.task import Task
from mainspring.tracing import Tracer

_OUR_FRAMES = 3

Handler = tuple[Callable[..., object], Signature, Retry]


class RunsEffects(ContextEffects, Protocol):
    """A run's effects, and its last word about how it ended."""

    def end(self, outcome: Outcome) -> Outcome: ...
    async def aend(self, outcome: Outcome) -> Outcome: ...


MakeEffects = Callable[[Claim, Settling, int], RunsEffects]
"""Of a claim, its run, and the bytes that a result may have."""


class Runner:
    """Runs what comes over the line until its other end closes."""

    def __init__(
        self,
        line: Line,
        find: Callable[[Run], Handler],
        effects: MakeEffects,
        tracer: Tracer | None = None,
    ) -> None:
        self._line = line
        self._tracer = tracer
        self._find = find
        self._effects = effects
        self._looper = Looper()

    def serve(self) -> None:
        """Say that we are ready, and work."""
        signal.signal(signal.SIGTERM, self._terminated)
        self._line.listen()
        self._line.send(Ready())
        while (run := self._line.next_run()) is not None:
            ended = self._ended(run)
            _flush()  # what the handler printed comes before what is logged about its end
            self._line.send(ended)
        self._looper.close()

    def _ended(self, run: Run) -> Ended:
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
        self, run: Run, function: Callable[..., object], signature: Signature, retry: Retry
    ) -> tuple[Outcome, bool]:
        running.set(run.claim)
        if self._tracer is not None and run.claim.trace is not None:
            self._tracer.enter(run.claim.trace)
        effects = None
        if signature.wants_context:
            effects = self._effects(run.claim, _Settling(self._line), run.result_bytes)
        context = None if effects is None else self._context(run, effects)

        def call() -> object:
            return signature.call(function, context, *decode(run.claim.payload))

        if signature.is_async:
            return self._looper.run(self._awaited(call, effects, run, retry))
        outcome, clean = _outcome(lambda: encode_result(call(), run.result_bytes), retry)
        return (outcome if effects is None else effects.end(outcome)), clean

    def _context(self, run: Run, effects: RunsEffects) -> Context:
        said = _Said(self._line)
        return context_of(
            run.claim,
            self._line.cancelled,
            log=RunLogger(run.claim, said, SystemClock()),
            on_progress=said.progress,
            effects=effects,
            period=run.period,
        )

    async def _awaited(
        self, call: Callable[[], object], effects: RunsEffects | None, run: Run, retry: Retry
    ) -> tuple[Outcome, bool]:
        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())

        def cancel() -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        self._line.on_cancel = cancel
        if self._line.cancelled.is_set():
            task.cancel()
        try:
            returned = await cast("Any", call())
            outcome, clean = _outcome(lambda: encode_result(returned, run.result_bytes), retry)
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            outcome, clean = _raised(error, retry)
        finally:
            self._line.on_cancel = lambda: None
        return (outcome if effects is None else await effects.aend(outcome)), clean

    def _terminated(self, number: int, frame: object) -> None:
        # A plain function that did not look at ctx.cancelled gets to clean up; one that is not in
        # Python code just now does not, and is killed a little later.
        raise SystemExit(128 + number)


class _Said:
    """What a handler says of its run goes to the worker, which waits for it and writes it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def add(self, line: str) -> None:
        self._line.send(Tell(name="log", body=line.encode("utf-8", "replace")))

    def progress(self, fraction: float, note: str) -> None:
        self._line.send(Tell(name="progress", body=msgspec.json.encode((fraction, note))))


class _Settling:
    """Tells the worker that the claim may be gone from the store at any moment, and that this is no loss."""

    def __init__(self, line: Line) -> None:
        self._line, self._settling = line, False

    @property
    def settling(self) -> bool:
        return self._settling

    @settling.setter
    def settling(self, value: bool) -> None:
        self._settling = value
        self._line.send(Tell(name="settling", body=b"1" if value else b""))


def _outcome(work: Callable[[], bytes | None], retry: Retry) -> tuple[Outcome, bool]:
    """How it ended, and whether the child is as good as before."""
    try:
        return Succeeded(result=work()), True
    except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
        return _raised(error, retry)


def _raised(error: BaseException, retry: Retry) -> tuple[Outcome, bool]:
    clean = (is_a(error, Exception) or is_a(error, Suspended)) and not is_a(error, MemoryError)
    return outcome_of(error, retry, frames_to_hide=_OUR_FRAMES), clean


def _frame(outcome: Outcome, *, clean: bool) -> Ended:
    match outcome:
        case Succeeded():
            return Ended(result=outcome.result, clean=clean)
        case Settled():
            return Ended(result=outcome.result, settled=True, clean=clean)
        case Snoozed():
            return Ended(snoozed=outcome.delay, awaits=outcome.awaits, clean=clean)
        case Discarded():
            return Ended(failure=outcome.failure, discarded=True, clean=clean)
        case Failed():
            return Ended(
                failure=outcome.failure,
                permanent=outcome.permanent,
                retry_after=outcome.retry_after,
                rule=outcome.rule,
                clean=clean,
            )
        case _:
            raise TypeError(f"a handler cannot end as {outcome}")


def found_by_name(run: Run) -> Handler:
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
