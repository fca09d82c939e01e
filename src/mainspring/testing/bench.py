"""Where plain functions lie until the thread that asked for them has time: it then calls them itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

__tracebackhide__ = True  # see harness.py


class Bench(Executor):
    """A pool without threads. The event loop is stopped while a function runs, so that it runs on the
    test's own thread, where its connections are, and may make blocking calls as it may in a worker."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._stir = asyncio.Event()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Lay the call down."""
        future: Future[T] = Future()
        self._calls.append(partial(_make, future, partial(fn, *args, **kwargs)))
        self._stir.set()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing is left open."""

    def drive(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine to its end on this event loop, and the calls it lays down beside it."""
        task = loop.create_task(work)
        task.add_done_callback(lambda _: self._stir.set())
        while not task.done():
            loop.run_until_complete(self._stir.wait())
            self._stir.clear()
            while self._calls:
                self._calls.popleft()()
        return task.result()


def _make(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001  not swallowed: whoever waits for the future gets it
        future.set_exception(error)
