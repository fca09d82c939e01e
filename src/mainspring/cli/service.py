"""One serving process, from the first signal handler to the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, NoReturn

from mainspring.app import Mainspring
from mainspring.cli.errors import by_signal
from mainspring.serve import serve

if TYPE_CHECKING:
    from mainspring.engine.process import Process

_HANDLER, _HELPER = "mainspring-handler", "mainspring-helper"
_USER_CODE_ENDS_WITHIN = 1.0
WORN_OUT = 70
"""The exit code when handlers that would not end have taken what the process works with."""


class Stopper:
    """Turns signals into stops: the first drains, the second aborts, even before there is a process."""

    def __init__(self, *, supervised: bool = False) -> None:
        self._supervised = supervised
        self._process: Process | None = None
        self._main: asyncio.Task[object] | None = None
        self._signals: list[int] = []

    def listen(self) -> None:
        """Take the signals of the running event loop."""
        loop = asyncio.get_running_loop()
        self._main = asyncio.current_task()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal, number)

    def started(self, process: Process) -> None:
        """From now on the process itself can be stopped."""
        self._process = process
        process.supervised = self._supervised
        process.on_blocked = lambda: _leave_at_once(WORN_OUT)
        if self._signals:
            process.stop()

    def code(self, *, aborted: bool) -> int:
        """0 after a clean drain; else what the last signal makes it."""
        return by_signal(self._signals[-1]) if aborted and self._signals else 0

    def _on_signal(self, number: int) -> None:
        self._signals.append(number)
        if self._process is not None:
            self._process.stop()
        elif len(self._signals) > 1 and self._main is not None:
            self._main.cancel()


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
    """Serve until stopped; answer the exit code. If user code will not let go, end the process here.
    With a `supervisor`, which is its process id, we drain when it is gone. What is `beside` lives as long."""
    if supervisor is not None:
        from mainspring.engine.isolate.family import die_with

        die_with(supervisor, signal.SIGTERM)
    helpers = ThreadPoolExecutor(thread_name_prefix=_HELPER)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        # Runner.close waits without a limit for the default executor and for tasks that ignore
        # being cancelled; so both are looked at first.
        runner.get_loop().set_default_executor(helpers)
        try:
            code = runner.run(
                _serve(
                    app,
                    Stopper(supervised=supervisor is not None),
                    worker=worker,
                    scheduler=scheduler,
                    burst=burst,
                    migrate=migrate,
                    beside=beside,
                )
            )
            stuck = runner.run(_some_task_goes_on())
        finally:
            helpers.shutdown(wait=False, cancel_futures=True)
        if _some_thread_goes_on() or stuck:
            _leave_at_once(code)
    return code


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
        store = await app.store(prepare=not migrate)
        try:
            if migrate:
                await store.migrate()
            async with beside(app):
                process = await serve(
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
    """Cancel what the handlers left running; answer whether some of it does not end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if not left:
        return False
    _, going_on = await asyncio.wait(left, timeout=_USER_CODE_ENDS_WITHIN)
    return bool(going_on)


def _some_thread_goes_on() -> bool:
    """Idle threads end by themselves now that their pools are shut; the others are in user code."""
    threads = [each for each in threading.enumerate() if each.name.startswith((_HANDLER, _HELPER))]
    for thread in threads:
        thread.join(_USER_CODE_ENDS_WITHIN / len(threads))
    return any(thread.is_alive() for thread in threads)


def _leave_at_once(code: int) -> NoReturn:
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
