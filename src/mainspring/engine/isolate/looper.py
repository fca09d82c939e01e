"""Inside a child: one event loop for all its async handlers, as long as they leave nothing behind on it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Looper:
    """Runs one coroutine after the other: with a loop for each, a child gets an eighth less done. A task or a
    thread that is left at work ends with its loop, before its job has ended."""

    def __init__(self) -> None:
        self._open: tuple[asyncio.Runner, _Threads] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the context of the caller, whose changes of it are not the next one's."""
        if self._open is None:
            self._open = asyncio.Runner(), _Threads()
        runner, threads = self._open
        runner.get_loop().set_default_executor(threads)
        alone = False
        try:
            answer = runner.run(work, context=contextvars.copy_context())
            alone = not asyncio.all_tasks(runner.get_loop()) and not threads.busy
            return answer
        finally:
            if not alone:
                self.close()

    def close(self) -> None:
        """End the loop, and wait for what is left on it."""
        if self._open is not None:
            runner, _ = self._open
            self._open = None
            runner.close()


class _Threads(ThreadPoolExecutor):
    """Knows which calls have not ended."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self.busy: set[Future[Any]] = set()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = super().submit(fn, *args, **kwargs)
        self.busy.add(future)
        future.add_done_callback(self.busy.discard)
        return future
