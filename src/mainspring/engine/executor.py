"""One run of one handler: async on the loop, sync in a thread, inside its timeout."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, cast

from mainspring.declare.context import Context, StopSignal
from mainspring.declare.payload import decode, encode_result
from mainspring.declare.task import Task
from mainspring.engine.effects import RunEffects, Settling
from mainspring.engine.failures import failure_of, timeout_failure
from mainspring.model.job import Claim
from mainspring.model.outcome import Failed, Outcome, Stopped, Succeeded
from mainspring.waiting import until

AnyTask = Task[..., Any]

LINGER = timedelta(seconds=2)
"""How long a plain function gets to notice that it should end, before its job goes back."""

_log = logging.getLogger("mainspring.job")


class Run(StopSignal, Settling, Protocol):
    """The run, as whoever asked for it has it in hand."""


MakeEffects = Callable[[Claim, Run], RunEffects]


class Release(Protocol):
    """Gives a thread back, and sets the event, from any thread."""

    def __call__(self, ended: asyncio.Event | None = None) -> None: ...


class Executor:
    """Turns a claim into an outcome. Whatever user code does becomes a value here; what passes
    through is a cancellation that we asked for ourselves."""

    def __init__(self, threads: int, effects: MakeEffects) -> None:
        self._effects = effects
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="mainspring-handler")
        self._free_threads = asyncio.Semaphore(threads)

    def run(self, task: AnyTask, claim: Claim, stop: Run) -> Coroutine[Any, Any, Outcome]:
        """Call the handler and answer how it ended."""
        # Not a coroutine itself: a handler that asks for nothing should not pay for what others may ask.
        if task.signature.wants_context:
            return self._run_with_context(task, claim, stop)
        return self._run(task, claim, None)

    async def _run_with_context(self, task: AnyTask, claim: Claim, stop: Run) -> Outcome:
        context = _context(claim, stop, effects := self._effects(claim, stop))
        try:
            return await effects.outcome(await self._run(task, claim, context))
        except asyncio.CancelledError:
            if effects.settled is not None:
                return effects.settled
            raise

    async def _run(self, task: AnyTask, claim: Claim, context: Context | None) -> Outcome:
        running = asyncio.current_task()
        try:
            # Before the clock of its timeout starts: waiting for a thread is not the handler's doing.
            thread = None if task.signature.is_async else await self._thread()
        except asyncio.CancelledError:
            return Stopped(started=False)
        try:
            if task.timeout is None:
                returned = await self._call(task, claim, context, thread)
            else:
                async with asyncio.timeout(task.timeout.total_seconds()) as limit:
                    returned = await self._call(task, claim, context, thread)
            return Succeeded(result=None if returned is None else encode_result(returned))
        except asyncio.CancelledError as error:
            if running is not None and running.cancelling():
                raise
            return Failed(failure=failure_of(error))  # the handler's own
        except TimeoutError as error:
            if task.timeout is not None and limit.expired():
                return Failed(failure=timeout_failure(task.timeout.total_seconds()))
            return Failed(failure=failure_of(error, frames_to_hide=2))
        except GeneratorExit as error:
            if _current_task() is not running:
                raise  # the coroutine is being thrown away, not run
            return Failed(failure=failure_of(error, frames_to_hide=2))
        except BaseException as error:  # noqa: BLE001 - a handler may raise anything, SystemExit too
            return Failed(failure=failure_of(error, frames_to_hide=2))

    def close(self) -> None:
        """Take no further work. Threads still in a handler are left to the process's end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(
        self, task: AnyTask, claim: Claim, context: Context | None, thread: Release | None
    ) -> object:
        call = partial(task.signature.call, task.function)
        try:
            args, kwargs = decode(claim.payload)
        except BaseException:
            if thread is not None:
                thread()
            raise
        if thread is None:
            return await cast("Any", call(context, args, kwargs))
        return await self._in_thread(partial(call, context, args, kwargs), thread)

    async def _in_thread(self, call: partial[object], thread: Release) -> object:
        within = contextvars.copy_context().run
        ended = asyncio.Event()
        try:
            future = self._threads.submit(within, _as_a_future_can_carry, call)
        except RuntimeError:  # the pool has been closed
            thread()
            raise
        # The thread is free when the handler has ended, which may be long after we stopped waiting.
        future.add_done_callback(lambda _: thread(ended))
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            # It cannot be stopped, but may look at ctx.cancelled: its job should not begin elsewhere
            # while it is about to end here.
            await until(ended, LINGER)
            raise

    async def _thread(self) -> Release:
        """Wait until a thread is free; answer how to give it back, from any thread."""
        await self._free_threads.acquire()
        loop = asyncio.get_running_loop()

        def release(ended: asyncio.Event | None = None) -> None:
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                loop.call_soon_threadsafe(self._free_threads.release)
                if ended is not None:
                    loop.call_soon_threadsafe(ended.set)

        return release


def _as_a_future_can_carry(call: partial[object]) -> object:
    # A future can carry neither of these; they would hang the job instead of failing it.
    try:
        return call()
    except (StopIteration, GeneratorExit) as error:
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _context(claim: Claim, stop: StopSignal, effects: RunEffects) -> Context:
    about = {"job_id": claim.job_id, "task": claim.task, "attempt": claim.attempt}
    return Context(
        job_id=claim.job_id,
        task=claim.task,
        queue=claim.queue,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts,
        fence=claim.fence,
        log=logging.LoggerAdapter(_log, about),
        stop=stop,
        schedule_id=claim.schedule_id,
        slot=claim.slot_at,
        effects=effects,
    )
