"""The blocking facade: one background event loop, for programs that have none."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mainspring.errors import UsageError

T = TypeVar("T")


class Portal:
    """Runs coroutines for blocking callers, from any thread. Its own thread starts with the first
    call, and anew in a forked child, which inherits no threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, instead: str) -> T:
        """Run it to its end and answer its result. Refused on a thread whose event loop would be
        blocked; `instead` names the call to await there."""
        if _in_event_loop():
            raise UsageError(f"this call would block the running event loop; await {instead}() instead")
        return asyncio.run_coroutine_threadsafe(work(), self._running()).result()

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run one last coroutine and end the thread."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        try:
            asyncio.run_coroutine_threadsafe(last(), loop).result()
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="mainspring-blocking", daemon=True
                )
                self._thread.start()
            return self._loop


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
