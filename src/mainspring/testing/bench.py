"""Where plain functions lie until the thread that asked for them has time: it then calls them itself."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mainspring.worker.threads import OnBegin, OnEnd, ThreadCall

T = TypeVar("T")

__tracebackhide__ = True  # see harness.py


class Bench:
    """A place without threads. The event loop is stopped while a function runs, so that it runs on the
    test's own thread, where its connections are, and may make blocking calls as it may in a worker."""

    def __init__(self) -> None:
        self._calls: deque[ThreadCall] = deque()
        self._stir = asyncio.Event()

    def start(self, work: Callable[[], object], on_end: OnEnd, on_begin: OnBegin = None) -> ThreadCall:
        """Lay the call down."""
        call = ThreadCall(work, on_end, on_begin)
        self._calls.append(call)
        self._stir.set()
        return call

    def close(self) -> None:
        """Nothing is left open."""

    def drive(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine to its end on this event loop, and the calls it lays down beside it."""
        task = loop.create_task(work)
        task.add_done_callback(lambda _: self._stir.set())
        while not task.done():
            loop.run_until_complete(self._stir.wait())
            self._stir.clear()
            while self._calls:
                _make(self._calls.popleft())
        return task.result()


def _make(call: ThreadCall) -> None:
    if not call.take():
        return
    if call.on_begin is not None:
        call.on_begin()
    try:
        value, error = call.work(), None
    except BaseException as raised:  # noqa: BLE001  not swallowed: whoever waits for the future gets it
        value, error = None, raised
    call.end(value, error)
