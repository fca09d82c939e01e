"""Tasks that work one run after another: one of its own for each would cost more than a short handler."""

from __future__ import annotations

import asyncio
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from mainspring.waiting import NOW, pause

W = TypeVar("W")

SPREAD = 2
"""Tasks started by one that has to wait. With one each, a hundred runs would begin one after another."""
YIELD_AFTER = 0.005
"""Seconds after which a task lets others run, however short its runs are."""

Work = Callable[[W, "asyncio.Task[None]"], Coroutine[Any, Any, None]]


class CoroutinePool(Generic[W]):
    """As many tasks as are needed, and no more: the next one is started when one has to wait.

    Runs that never wait are done by one task without a turn of the event loop, each in a context of its own.
    A task that had to wait in a run does no other after it: users keep sessions and the like by task, and
    those must not be the next run's. Nor does a task that was cancelled: in Python 3.11 the cancellation may
    still be on its way.
    """

    def __init__(self, work: Work[W], now: Callable[[], float]) -> None:
        self._work = work
        self._now = now
        self._waiting: deque[W] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._coming = 0
        """Tasks that were started and have not begun."""

    def give(self, works: Iterable[W]) -> None:
        """Have these done, soon and in this order."""
        self._waiting.extend(works)
        self._call(1)

    def _call(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting) - self._coming)):
            self._coming += 1
            task = asyncio.get_running_loop().create_task(self._serve())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _spread(self) -> None:
        self._call(SPREAD)

    async def _serve(self) -> None:
        self._coming -= 1
        me = asyncio.current_task()
        assert me is not None  # noqa: S101 - it runs as a task
        began = self._now()
        while self._waiting:
            try:
                waited = await _apart(self._work(self._waiting.popleft(), me), self._spread)
            except BaseException:
                self._call(1)  # a defect of ours, or the loop's end: others go on
                raise
            if waited or me.cancelling():
                self._call(1)
                return
            if self._now() - began > YIELD_AFTER:
                await pause(NOW)
                began = self._now()


@types.coroutine
def _apart(work: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> Generator[Any, Any, bool]:
    """Awaits a coroutine in a context of its own; calls `on_wait` when it waits for the first time, and
    answers whether it did."""
    run, send = copy_context().run, work.send
    try:
        awaited = run(send, None)
    except StopIteration:
        return False
    on_wait()
    while True:
        try:
            answer = yield awaited
        except GeneratorExit:
            run(work.close)
            raise
        except BaseException as error:  # noqa: BLE001 - not swallowed: it is the coroutine's
            raised = error
        else:
            try:
                awaited = run(send, answer)
            except StopIteration:
                return True
            continue
        try:
            awaited = run(work.throw, raised)
        except StopIteration:
            return True
