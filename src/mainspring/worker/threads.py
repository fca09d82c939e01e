"""Threads for plain functions: calls are taken, and their ends reported, in chunks and not one by one. A
function that has begun cannot be stopped: its thread is given up, until it does end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Protocol, TypeVar

from mainspring.model.job import Claim
from mainspring.waiting import until

NAME = "mainspring-handler"

OnBegin = Callable[[], None] | None
OnEnd = Callable[[Any, BaseException | None], None]


class ThreadCall:
    """One call, and its end. Its callbacks are called on the event loop."""

    __slots__ = ("_ticket", "on_begin", "on_end", "on_over", "over", "work")

    def __init__(
        self, work: Callable[[], object], on_end: OnEnd, on_begin: Callable[[], None] | None
    ) -> None:
        self.work = work
        self.on_end = on_end
        self.on_begin = on_begin
        self.on_over: Callable[[], None] | None = None
        self.over = False
        """Whether the function has ended."""
        self._ticket = [None]

    def take(self) -> bool:
        """Take the right to begin the call, or to see to it that it never begins. True for the first caller,
        on any thread."""
        try:
            self._ticket.pop()
        except IndexError:
            return False
        return True

    def end(self, value: object, error: BaseException | None) -> None:
        """It has ended so."""
        self.over = True
        if self.on_over is not None:
            self.on_over()
        self.on_end(value, error)


class FunctionPool(Protocol):
    """Where plain functions are called."""

    def start(self, work: Callable[[], object], on_end: OnEnd, on_begin: OnBegin = None) -> ThreadCall:
        """Call it, as soon as there is a place."""

    def close(self) -> None:
        """Begin nothing more."""


class ThreadPool:
    """So many threads, begun when they are needed.

    A call rouses one thread, and a thread that begins a call while others wait rouses the next: functions
    that take long are spread over all threads, and of those that take no time one thread does many in a row.
    """

    def __init__(self, size: int) -> None:
        self._calls: deque[ThreadCall] = deque()
        self._news: deque[Callable[[], None]] = deque()
        """What the event loop has to hear."""
        self._telling = False
        """Whether it has been called for that, and has not come yet."""
        self._lock = threading.Lock()
        self._size = self._unborn = size
        self._idle: list[threading.Lock] = []
        self._roused = False
        """Whether a thread has been roused that is not yet awake."""
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self, work: Callable[[], object], on_end: OnEnd, on_begin: OnBegin = None) -> ThreadCall:
        if self._closed:
            raise RuntimeError("cannot begin a call after the end")
        self._loop = asyncio.get_running_loop()
        call = ThreadCall(work, on_end, on_begin)
        self._calls.append(call)
        if not self._roused:
            try:
                self._rouse()
            except RuntimeError:
                self._calls.remove(call)  # there is no thread that could have seen it
                raise
        return call

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for gate in idle:
            gate.release()
        self._calls.clear()

    def _rouse(self) -> None:
        """Wake a thread or begin one; RuntimeError if the system gives us none and there is no other."""
        with self._lock:
            if self._roused or self._closed or (not self._idle and not self._unborn):
                return
            self._roused = True  # before it is: it says itself when it is awake
            if self._idle:
                self._idle.pop().release()
                return
            self._unborn -= 1
            try:
                threading.Thread(target=self._serve, name=NAME, daemon=True).start()
            except RuntimeError:
                self._roused, self._unborn = False, self._unborn + 1
                if self._unborn == self._size:
                    raise

    def _serve(self) -> None:
        gate = threading.Lock()
        gate.acquire()  # held whenever this thread is awake
        while True:
            self._roused = False
            self._work()
            with self._lock:
                if self._closed:
                    return
                if self._calls:
                    continue  # it came before we had said that we rest
                self._idle.append(gate)
            gate.acquire()

    def _work(self) -> None:
        while True:
            try:
                call = self._calls.popleft()
            except IndexError:
                return
            if self._calls and not self._roused:
                self._rouse()
            if not call.take():
                continue
            if call.on_begin is not None:
                self._tell(call.on_begin)
            try:
                value, error = call.work(), None
            except BaseException as raised:  # noqa: BLE001 - not swallowed: the caller gets it
                value, error = None, raised
            self._tell(_End(call, value, error))

    def _tell(self, news: Callable[[], None]) -> None:
        self._news.append(news)
        if not self._telling and self._loop is not None:
            self._telling = True
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        # Before the first is taken: for what comes from now on, this is called again.
        self._telling = False
        try:
            while self._news:
                self._news.popleft()()
        finally:
            if self._news and self._loop is not None:
                self._loop.call_soon(self._hear)  # a defect in one of them is not the others'


class _End:
    __slots__ = ("_call", "_error", "_value")

    def __init__(self, call: ThreadCall, value: object, error: BaseException | None) -> None:
        self._call, self._value, self._error = call, value, error

    def __call__(self) -> None:
        self._call.end(self._value, self._error)


T = TypeVar("T")

LINGER = timedelta(seconds=2)
"""How long a function gets to notice that its run should end, before that ends without it."""


async def run_in_thread(call: Callable[[], T]) -> T:
    """What it returns or raises. The thread is a daemon: one that never ends does not keep the process."""
    future: Future[T] = Future()
    within = contextvars.copy_context().run

    def work() -> None:
        try:
            future.set_result(within(as_a_future_can_carry, call))
        except BaseException as error:  # noqa: BLE001 - not swallowed: the caller gets it
            future.set_exception(error)

    threading.Thread(target=work, name="mainspring-step", daemon=True).start()
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # It cannot be stopped: its job should not begin elsewhere while it is about to end here.
        await asyncio.wait([waiting], timeout=LINGER.total_seconds())
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, and not raised
        raise


def as_a_future_can_carry(call: Callable[[], T]) -> T:
    """Call it. What a future cannot carry would hang the job instead of failing it."""
    try:
        return call()
    except (StopIteration, GeneratorExit) as error:
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error


class NeverBegan(Exception):
    """A run was ended while it waited for a thread, or for what it needs to know first."""


class HandlerThreads:
    """The threads of one worker, less those that are lost to handlers that do not end."""

    def __init__(self, size: int, pool: FunctionPool | None, on_leak: Callable[[Claim, int], None]) -> None:
        """Functions are called in `pool`, or else in threads of our own. `on_leak` hears of the claim whose
        handler took a thread, and how many threads are left."""
        self._pool = pool or ThreadPool(size)
        self._on_leak = on_leak
        self.left = size

    def start(self, work: Callable[[], object], on_end: OnEnd, on_begin: OnBegin) -> ThreadCall:
        """Call a function as soon as there is a thread for it."""
        return self._pool.start(work, on_end, on_begin)

    async def result(self, work: Callable[[], object], claim: Claim, on_begin: OnBegin) -> object:
        """The same for one that is awaited. A cancellation waits a moment for the function to end; NeverBegan
        if it had not begun."""
        future = asyncio.get_running_loop().create_future()

        def ended(value: object, error: BaseException | None) -> None:
            if future.done():
                return  # the waiting task was cancelled
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        within = contextvars.copy_context().run
        call = self.start(partial(within, as_a_future_can_carry, work), ended, on_begin)
        try:
            return await future
        except asyncio.CancelledError:
            if call.take():
                raise NeverBegan from None
            if not call.over:
                over = asyncio.Event()
                call.on_over = over.set
                if not await until(over, LINGER):
                    self._lose(call, claim)
            raise

    def give_up_soon(self, call: ThreadCall, claim: Claim, on_given_up: Callable[[], None]) -> None:
        """A function that has begun cannot be stopped. It may look at ctx.cancelled, and its job should not
        begin elsewhere while it is about to end here: so it gets a moment."""

        def look() -> None:
            # It may be stopped twice, for its timeout and by a release; it is given up once.
            if not call.over and call.on_over is None:
                self._lose(call, claim)
                on_given_up()

        asyncio.get_running_loop().call_later(LINGER.total_seconds(), look)

    def close(self) -> None:
        """Take no further work. Threads still in a handler are left to the process's end."""
        self._pool.close()

    def _lose(self, call: ThreadCall, claim: Claim) -> None:
        """The thread is lost, until its handler does end."""

        def found_again() -> None:
            self.left += 1

        self.left -= 1
        call.on_over = found_again
        self._on_leak(claim, self.left)
