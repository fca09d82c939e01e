"""Tasks that work one run after another: one of its own for each would cost more than a short handler."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from mainspring.waiting import NOW, pause

W = TypeVar("W")

SPREAD = 2
"""Hands called for by one that has to wait: were it one, a hundred runs would begin one after another."""
YIELD_AFTER = 0.005
"""Seconds after which a hand lets others on, however short its runs are."""

Work = Callable[[W, "asyncio.Task[None]"], Coroutine[Any, Any, None]]


class Hands(Generic[W]):
    """As many as are needed, and no more: the next one is called when one has to wait.

    Runs that never wait are done by one hand without a turn of the event loop. Each is in a context of its
    own, as it would be in a task of its own; what differs is that `asyncio.current_task` may be the same for
    two of them, one after the other. A hand that was ever cancelled works no more: what was asked of its
    task might still be on its way when the next run begins.
    """

    def __init__(self, work: Work[W], now: Callable[[], float]) -> None:
        self._work = work
        self._now = now
        self._waiting: deque[W] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def give(self, works: Iterable[W]) -> None:
        """Have these done, soon and in this order."""
        self._waiting.extend(works)
        self._call(1)

    def _call(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting))):
            task = asyncio.get_running_loop().create_task(self._hand())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _spread(self) -> None:
        self._call(SPREAD)

    async def _hand(self) -> None:
        me = asyncio.current_task()
        assert me is not None  # noqa: S101 - it runs as a task
        began = self._now()
        while self._waiting:
            apart = _Apart(self._work(self._waiting.popleft(), me), self._spread)
            try:
                await apart
            except BaseException:
                self._call(1)  # a defect of ours, or the loop's end: others go on
                raise
            if me.cancelling():
                self._call(1)
                return
            if apart.waited:
                began = self._now()
            elif self._now() - began > YIELD_AFTER:
                await pause(NOW)
                began = self._now()


class _Apart:
    """Awaits a coroutine in a context of its own, and tells the first time that it has to wait."""

    __slots__ = ("_on_wait", "_work", "waited")

    def __init__(self, work: Coroutine[Any, Any, None], on_wait: Callable[[], None]) -> None:
        self._work = work
        self._on_wait = on_wait
        self.waited = False

    def __await__(self) -> Generator[Any, Any, None]:
        work, run = self._work, copy_context().run
        try:
            awaited = run(work.send, None)
        except StopIteration:
            return
        self.waited = True
        self._on_wait()
        while True:
            try:
                step = partial(work.send, (yield awaited))
            except GeneratorExit:
                run(work.close)
                raise
            except BaseException as error:  # noqa: BLE001 - not swallowed: it is the coroutine's
                step = partial(work.throw, error)
            try:
                awaited = run(step)
            except StopIteration:
                return
