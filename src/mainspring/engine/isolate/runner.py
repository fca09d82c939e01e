"""Inside a child: one job after the other, in the main thread, where signals and C code expect to be."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from mainspring.declare.payload import decode, encode_result
from mainspring.declare.signature import Signature
from mainspring.declare.task import Task
from mainspring.engine.executor import context_of
from mainspring.engine.failures import failure_of
from mainspring.engine.isolate.caps import capped
from mainspring.engine.isolate.family import has_children
from mainspring.engine.isolate.frames import Ended, Ready, Run
from mainspring.engine.isolate.line import Line
from mainspring.model.failure import Failure

_OUR_FRAMES = 3

Handler = tuple[Callable[..., object], Signature]


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
        result: bytes | None = None
        failure: Failure | None = None
        clean = True
        try:
            with capped(run.memory, run.processes):
                result = self._call(run)
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            failure = failure_of(error, frames_to_hide=_OUR_FRAMES)
            clean = isinstance(error, Exception) and not isinstance(error, MemoryError)
        return Ended(result=result, failure=failure, clean=clean and not has_children())

    def _call(self, run: Run) -> bytes | None:
        function, signature = self._find(run)
        args, kwargs = decode(run.claim.payload)
        context = context_of(run.claim, self._line.cancelled) if signature.wants_context else None
        returned = signature.call(function, context, args, kwargs)
        if signature.is_async:
            returned = asyncio.run(self._awaited(returned))
        return None if returned is None else encode_result(returned)

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


def found_by_name(run: Run) -> Handler:
    """The handler of a task that is to be found at the top of a module."""
    module, _, path = (run.function or "").partition(":")
    found: object = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if isinstance(found, Task):
        return found.function, found.signature
    function = cast("Callable[..., object]", found)
    return function, Signature.of(function, run.claim.task)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, or there is none
            stream.flush()
