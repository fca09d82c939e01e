"""The blocking facade: one background event loop, for programs that have none."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from mainspring import forks
from mainspring.errors import UsageError

T = TypeVar("T")

AT_EXIT_WITHIN_SECONDS = 2.0


class Portal:
    """Runs coroutines for blocking callers, from any thread. Its own thread starts with the first
    call, and again in a forked child, which inherits no threads. `goodbye` runs on that thread at the end."""

    def __init__(self, goodbye: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._goodbye = goodbye
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        forks.tell(self)

    def call(
        self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str, while_waited_for: bool = False
    ) -> T:
        """Run a coroutine to its end and answer its result. Refused on a thread whose event loop would be
        blocked: the error names the call `instead`. With `while_waited_for` the work is cancelled when
        its caller is interrupted; other work continues to its end."""
        if _in_event_loop():
            raise UsageError(f"this call would block the running event loop; use `{instead}` instead")
        running = asyncio.run_coroutine_threadsafe(work(), self._running())
        try:
            return running.result()
        finally:
            if while_waited_for:
                running.cancel()

    def close(self, *, within: float | None = None) -> None:
        """Run `goodbye` and end the thread. Nothing happens if the thread never started."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        try:
            asyncio.run_coroutine_threadsafe(self._goodbye(), loop).result(within)
        finally:  # the thread must end even if `goodbye` fails
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def inherit(self) -> None:
        """Called in a forked child: it has no such thread, and the parent uses the event loop's files too."""
        forks.abandon(self._loop)
        self._lock, self._loop, self._thread = threading.Lock(), None, None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="mainspring-blocking", daemon=True
                )
                self._thread.start()
                # A script that enqueues and ends should still send its hint to the workers.
                atexit.register(_close_at_exit, weakref.ref(self))
            return self._loop


def _close_at_exit(portal: weakref.ref[Portal]) -> None:
    if (left := portal()) is not None:
        with suppress(TimeoutError):
            left.close(within=AT_EXIT_WITHIN_SECONDS)


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
