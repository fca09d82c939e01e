"""One serving process, from the first signal handler to the exit code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from mainspring.app import Mainspring
from mainspring.cli.errors import by_signal
from mainspring.cli.watchdog import ORPHANED, STOPPING, Watchdog, leave_at_once
from mainspring.process.serve import aserve
from mainspring.telemetry.events import ProcessOverdue, StrayRaised
from mainspring.worker.outcomes import failure_of

if TYPE_CHECKING:
    from mainspring.process.process import Process

T = TypeVar("T")

_HANDLER, _HELPER = "mainspring-handler", "mainspring-helper"
_USER_CODE_ENDS_WITHIN = 1.0
_LEAVE_WITHIN = timedelta(seconds=5)
WORN_OUT = 70
"""The exit code if handlers that do not end have used up all threads or execution slots."""


class Stopper:
    """Turns signals into stops: the first drains, the second aborts, even before there is a process. Its
    watchdog ensures that the process then ends."""

    def __init__(self, app: Mainspring, grace: timedelta, *, supervised: bool = False) -> None:
        self._app = app
        self._supervised = supervised
        self._process: Process | None = None
        self._main: asyncio.Task[object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._signals: list[int] = []
        self._passed_on = 0
        """The number of signals that were passed to the process. Each signal stops the process once, also a
        signal that came before there was a process."""
        self._watchdog = Watchdog(grace, last_words=self._last_words, wake=self._wake)

    def listen(self) -> None:
        """Handle the signals of this process. Call this on its event loop."""
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        self._watchdog.listen(self._signalled)

    def stray(self, error: BaseException) -> None:
        """A background task has raised `SystemExit` or `KeyboardInterrupt`, which stopped the event loop. The
        event loop continues after this call."""
        self._app._telemetry.emit(StrayRaised(kind=failure_of(error).type))
        if self._loop is not None:
            self._loop.call_soon(self._watchdog.hear_signals)

    def started(self, process: Process) -> None:
        """From now on the process itself can be stopped."""
        self._process = process
        process.supervised = self._supervised
        process.signals.loop_blocked.connect(lambda: leave_at_once(WORN_OUT))
        process.signals.ending.connect(self._watchdog.drain)
        self._pass_on(process)

    def code(self, *, aborted: bool) -> int:
        """0 after a clean drain; otherwise the code of the last signal."""
        return by_signal(self._signals[-1]) if aborted and self._signals else 0

    def _signalled(self, number: int, frame: object) -> None:
        if number not in STOPPING and self._signals:
            return  # the process already ends; the death of the supervisor does not shorten this
        self._signals.append(number)
        self._watchdog.drain() if len(self._signals) == 1 else self._watchdog.abort()
        with suppress(RuntimeError):  # the event loop has ended
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._process is not None:
            self._pass_on(self._process)
        elif len(self._signals) > 1 and self._main is not None:
            self._main.cancel()

    def _pass_on(self, process: Process) -> None:
        while self._passed_on < len(self._signals):
            self._passed_on += 1
            process.stop()

    def _wake(self) -> None:
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(lambda: None)

    def _last_words(self) -> int:
        process = self._process
        if process is not None:
            jobs = process.left()
            given_back = process.leave(_LEAVE_WITHIN)
            self._app._telemetry.emit(ProcessOverdue(jobs=jobs, given_back=given_back))
        return WORN_OUT


def run_service(
    app: Mainspring,
    *,
    worker: bool,
    scheduler: bool,
    burst: bool = False,
    migrate: bool = False,
    supervisor: int | None = None,
    beside: Callable[[Mainspring], AbstractAsyncContextManager[object]] = nullcontext,
) -> int:
    """Serve until stopped; answer the exit code. If user code does not end, end the process here.
    `supervisor` is a process id: the process drains when that process has ended. `beside` runs meanwhile."""
    if supervisor is not None:
        from mainspring.worker.children.child_reaper import die_with

        die_with(supervisor, ORPHANED)
    helpers = ThreadPoolExecutor(thread_name_prefix=_HELPER)
    grace = app.settings.worker.shutdown_timeout if worker else timedelta()
    stopper = Stopper(app, grace, supervised=supervisor is not None)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        # Runner.close waits without a limit for the default executor and for tasks that ignore
        # being cancelled; so both are checked first.
        runner.get_loop().set_default_executor(helpers)
        serving = _serve(
            app,
            stopper,
            worker=worker,
            scheduler=scheduler,
            burst=burst,
            migrate=migrate,
            beside=beside,
        )
        try:
            code = _run(runner.get_loop(), serving, stopper.stray)
            stuck = _run(runner.get_loop(), _some_task_goes_on(), stopper.stray)
        finally:
            helpers.shutdown(wait=False, cancel_futures=True)
        if _some_thread_goes_on() or stuck:
            leave_at_once(code)
    return code


def _run(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], stray: Callable[[BaseException], None]
) -> T:
    """Run it to its end. `SystemExit` and `KeyboardInterrupt` of any task stop an event loop. If
    another task raised them, `stray` is called, and the event loop continues."""
    task = loop.create_task(work)
    while True:
        try:
            return loop.run_until_complete(task)
        except BaseException as error:
            if task.done():
                raise
            stray(error)


async def _serve(
    app: Mainspring,
    stopper: Stopper,
    *,
    worker: bool,
    scheduler: bool,
    burst: bool,
    migrate: bool,
    beside: Callable[[Mainspring], AbstractAsyncContextManager[object]],
) -> int:
    stopper.listen()
    try:
        store = await app._store(prepare=not migrate)
        try:
            if migrate:
                await store.migrate()
            async with beside(app):
                process = await aserve(
                    app, worker=worker, scheduler=scheduler, burst=burst, on_start=stopper.started
                )
        finally:
            await app.aclose()
    except asyncio.CancelledError:
        return stopper.code(aborted=True)
    return WORN_OUT if process.worn_out else stopper.code(aborted=process.aborted)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _some_task_goes_on() -> bool:
    """Cancel the tasks that handlers left running; answer whether a task does not end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return False
    _, going_on = await asyncio.wait(left, timeout=_USER_CODE_ENDS_WITHIN)
    return bool(going_on)


def _some_thread_goes_on() -> bool:
    """Idle threads end when their pools are shut down; the other threads are in user code."""
    threads = [each for each in threading.enumerate() if each.name.startswith((_HANDLER, _HELPER))]
    for thread in threads:
        thread.join(_USER_CODE_ENDS_WITHIN / len(threads))
    return any(thread.is_alive() for thread in threads)
