"""The child's end of the line to its worker: frames out from any thread, frames in by a thread of its own."""

from __future__ import annotations

import asyncio
import itertools
import queue
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future

from mainspring.engine.isolate.frames import (
    HEADER,
    Ask,
    Cancel,
    Hello,
    Reply,
    Run,
    ToWorker,
    for_child,
    length,
    written,
)
from mainspring.errors import MainspringError

_STACK = 256 * 1024
"""Of the listening thread: a thread's usual stack would count against a cap on memory."""


_here: list[Line] = []


def current() -> Line:
    """The line of the child that this code runs in."""
    if not _here:
        raise LookupError("this process is no child of a worker")
    return _here[0]


class Refused(MainspringError):
    """The worker could not do what the handler's context asked of it."""


class Line:
    """One socket. `cancelled` is of the run under way."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._runs: queue.SimpleQueue[Run | None] = queue.SimpleQueue()
        self._asked: dict[int, Future[bytes]] = {}
        self._numbers = itertools.count(1)
        self.cancelled = threading.Event()
        self.on_cancel: Callable[[], None] = lambda: None

    def hello(self) -> Hello:
        """The worker's first word, waited for."""
        frame = self._receive()
        if not isinstance(frame, Hello):
            raise EOFError("the worker left before it said hello")
        return frame

    def listen(self) -> None:
        """Begin to take in frames, and be the line of this process."""
        _here[:] = [self]
        usual = threading.stack_size(_STACK)
        try:
            threading.Thread(target=self._listen, name="mainspring-line", daemon=True).start()
        finally:
            threading.stack_size(usual)

    def next_run(self) -> Run | None:
        """The next job, waited for; None when the worker wants no more of us."""
        return self._runs.get()

    def send(self, frame: ToWorker) -> None:
        """Say this to the worker."""
        text = written(frame)
        with self._sending:
            self._channel.sendall(text)

    def ask(self, name: str, body: bytes = b"") -> bytes:
        """Have the worker do something, and wait for its answer: for plain functions."""
        return self._ask(name, body).result()

    async def aask(self, name: str, body: bytes = b"") -> bytes:
        """The same on an event loop."""
        return await asyncio.wrap_future(self._ask(name, body))

    def _ask(self, name: str, body: bytes) -> Future[bytes]:
        number, answer = next(self._numbers), Future[bytes]()
        self._asked[number] = answer
        self.send(Ask(number=number, name=name, body=body))
        return answer

    def _listen(self) -> None:
        try:
            while (frame := self._receive()) is not None:
                match frame:
                    case Run():
                        self.cancelled.clear()
                        self._runs.put(frame)
                    case Cancel():
                        self.cancelled.set()
                        self.on_cancel()
                    case Reply():
                        self._replied(frame)
                    case Hello():
                        pass
        finally:
            self._runs.put(None)

    def _replied(self, reply: Reply) -> None:
        answer = self._asked.pop(reply.number, None)
        if answer is None or not answer.set_running_or_notify_cancel():
            return
        if reply.failure is None:
            answer.set_result(reply.body)
        else:
            answer.set_exception(Refused(f"{reply.failure.type}: {reply.failure.message}"))

    def _receive(self) -> Hello | Run | Cancel | Reply | None:
        header = self._exactly(HEADER)
        body = None if header is None else self._exactly(length(header))
        return None if body is None else for_child(body)

    def _exactly(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            part = self._channel.recv(min(size - len(parts), 1 << 16))
            if not part:
                return None
            parts += part
        return bytes(parts)
