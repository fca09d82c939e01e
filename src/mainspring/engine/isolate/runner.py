"""Inside a child: one job after the other, in the main thread, where signals and C code expect to be."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn, cast

import msgspec

from mainspring.clock import SystemClock
from mainspring.declare.context import Context
from mainspring.declare.payload import decode, encode_result
from mainspring.declare.retry import Retry
from mainspring.declare.signature import Signature
from mainspring.declare.task import Task
from mainspring.engine.executor import context_of
from mainspring.engine.isolate.caps import capped
from mainspring.engine.isolate.family import has_children
from mainspring.engine.isolate.frames import Ended, Ready, Run, Tell
from mainspring.engine.isolate.line import Line
from mainspring.engine.outcomes import outcome_of
from mainspring.engine.runlog import RunLogger
from mainspring.errors import UsageError
from mainspring.model.outcome import Discarded, Failed, Outcome, Snoozed

_OUR_FRAMES = 3

Handler = tuple[Callable[..., object], Signature, Retry]


class Runner:
    """Runs what comes over the line until its other end closes."""

    def __init__(self, line: Line, find: Callable[[Run], Handler]) -> None:
        self._line = line
        self._find = find

    def serve(self) -> None:
        """Say that we are ready, and work."""
        signal.signal(signal.SIGTERM, self._terminated)
        self._line.listen()
        self._line.send(Ready())
        while (run := self._line.next_run()) is not None:
            ended = self._ended(run)
            _flush()  # what the handler printed comes before what is logged about its end
            self._line.send(ended)

    def _ended(self, run: Run) -> Ended:
        retry = Retry()
        try:
            function, signature, retry = self._find(run)
            with capped(run.memory, run.processes):
                return Ended(result=self._call(run, function, signature), clean=not has_children())
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            clean = isinstance(error, Exception) and not isinstance(error, MemoryError)
            return _raised(outcome_of(error, retry, frames_to_hide=_OUR_FRAMES), clean and not has_children())

    def _call(self, run: Run, function: Callable[..., object], signature: Signature) -> bytes | None:
        args, kwargs = decode(run.claim.payload)
        context = self._context(run) if signature.wants_context else None
        returned = signature.call(function, context, args, kwargs)
        if signature.is_async:
            returned = asyncio.run(self._awaited(returned))
        return None if returned is None else encode_result(returned, run.result_bytes)

    def _context(self, run: Run) -> Context:
        said = _Said(self._line)
        return context_of(
            run.claim,
            self._line.cancelled,
            log=RunLogger(run.claim, said, SystemClock()),
            on_progress=said.progress,
            effects=NoEffects(),
        )

    async def _awaited(self, handler: Any) -> object:
        loop, task = asyncio.get_running_loop(), cast("asyncio.Task[Any]", asyncio.current_task())

        def cancel() -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(task.cancel)

        self._line.on_cancel = cancel
        if self._line.cancelled.is_set():
            task.cancel()
        try:
            return await handler
        finally:
            self._line.on_cancel = lambda: None

    def _terminated(self, number: int, frame: object) -> None:
        # A plain function that did not look at ctx.cancelled gets to clean up; one that is not in
        # Python code just now does not, and is killed a little later.
        raise SystemExit(128 + number)


class NoEffects:
    """For the runs of a child: their claim, and what it takes to settle it, are with the worker."""

    def transaction(self, result: object) -> NoReturn:
        self._refuse("transaction()")

    def complete(self, tx: object, result: object) -> NoReturn:
        self._refuse("complete()")

    async def acomplete(self, tx: object, result: object) -> NoReturn:
        self._refuse("acomplete()")

    def once(self, name: str, tx: object | None) -> NoReturn:
        self._refuse("once()")

    def _refuse(self, what: str) -> NoReturn:
        raise UsageError(f"ctx.{what}: not in a child process; leave isolate=True away, or use ctx.token")


class _Said:
    """What a handler says of its run goes to the worker, which waits for it and writes it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    def add(self, line: str) -> None:
        self._line.send(Tell(name="log", body=line.encode("utf-8", "replace")))

    def progress(self, fraction: float, note: str) -> None:
        self._line.send(Tell(name="progress", body=msgspec.json.encode((fraction, note))))


def _raised(outcome: Outcome, clean: bool) -> Ended:
    match outcome:
        case Snoozed():
            return Ended(snoozed=outcome.delay, clean=clean)
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
