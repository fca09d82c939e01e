"""Threads for plain functions, which take calls and tell of their ends in chunks, not one by one."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

NAME = "mainspring-handler"


class Call:
    """One call, and what became of it. All but `work` belongs to the event loop."""

    __slots__ = ("future", "on_over", "over", "work")

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.over = False
        """Whether the function has ended, which may be long after nobody waits for the future any more."""
        self.on_over: Callable[[], None] = _nothing

    def end(self, value: object, error: BaseException | None) -> None:
        """It has ended so."""
        self.over = True
        self.on_over()
        if self.future.done():
            return  # whoever waited was cancelled
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


class Places(Protocol):
    """Where plain functions are called."""

    async def take(self) -> None:
        """Wait until one more may be called."""

    def give_back(self) -> None:
        """It was not called after all."""

    def start(self, work: Callable[[], object]) -> Call:
        """Call it, on a place that was taken."""

    def close(self) -> None:
        """Call nothing more."""


class Threads:
    """So many threads, begun when they are needed.

    A call rouses one thread, and a thread that begins a call while others wait rouses the next: functions
    that take long are spread over all threads, and of those that take no time one thread does many in a row.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._takers: deque[asyncio.Future[None]] = deque()
        self._calls: deque[Call] = deque()
        self._ended: deque[tuple[Call, object, BaseException | None]] = deque()
        self._telling = False
        """Whether the event loop has been told of ended calls, and has not come yet."""
        self._lock = threading.Lock()
        self._unborn = size
        self._idle: list[threading.Lock] = []
        self._roused = False
        """Whether a thread has been roused that is not yet awake."""
        self._closed = False

    async def take(self) -> None:
        if self._free and not self._takers:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._takers.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        while self._takers:
            turn = self._takers.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def start(self, work: Callable[[], object]) -> Call:
        if self._closed:
            self.give_back()
            raise RuntimeError("cannot begin a call after the end")
        call = Call(work)
        self._calls.append(call)
        if not self._roused:
            self._rouse()
        return call

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for gate in idle:
            gate.release()
        with suppress(IndexError):  # threads may be taking them, too
            while True:
                self._calls.popleft().future.cancel()

    def _rouse(self) -> None:
        with self._lock:
            if self._roused or self._closed:
                return
            if not self._idle and not self._unborn:
                return
            self._roused = True  # before it is: it says itself when it is awake
            if self._idle:
                self._idle.pop().release()
            else:
                self._unborn -= 1
                threading.Thread(target=self._serve, name=NAME, daemon=True).start()

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
            try:
                value, error = call.work(), None
            except BaseException as raised:  # noqa: BLE001 - not swallowed: whoever waits gets it
                value, error = None, raised
            self._ended.append((call, value, error))
            if not self._telling:
                self._telling = True
                with suppress(RuntimeError):  # the event loop has ended meanwhile
                    call.future.get_loop().call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        # Before the first is taken: of one that ends from now on, we are told again.
        self._telling = False
        while self._ended:
            call, value, error = self._ended.popleft()
            self.give_back()
            call.end(value, error)


def _nothing() -> None:
    """Most calls end while they are waited for."""
