"""What a worker and its child say to each other: length-prefixed msgpack, bounded, never pickle.

    worker → child    Hello, then for each job: StartRun, perhaps CancelRun, and a Reply to every Ask
    child → worker    Ready, then for each job: any number of Tells and Asks, and one HandlerEnded

`Ask` is how a handler's context reaches what only the worker has: the store, the lease. The child names
what it wants and sends a body; the worker looks the name up among the `answers` its pool was given, calls
`await answer(claim, body)` and sends back what that returns, or what it raised. A new feature of the
context needs a name, an answer in the worker, and in the child `channel.ask(name, body)`, which blocks, or
`await channel.aask(name, body)`. Bodies are bytes; JSON is the custom.
`Tell` is the same for what needs no answer: progress, and lines of the log.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta

import msgspec

from mainspring.errors import MainspringError
from mainspring.model.job import Claim, Failure
from mainspring.model.schedule import Period
from mainspring.model.value import Value
from mainspring.tasks.payload import LARGEST_RESULT

LARGEST = 20 * 1024 * 1024
"""No frame is larger: a payload has 256 KiB at most, a result 16 MiB."""
_LENGTH = struct.Struct(">I")
HEADER = _LENGTH.size


class FrameError(Exception):
    """What came is no frame of ours: the other side is out of its mind, or has been replaced."""


class Hello(Value, frozen=True, kw_only=True, tag=True):
    """How to find the app: by its target, or, without one, task by task."""

    target: str | None = None
    path: tuple[str, ...] = ()
    """Where the worker looks for modules."""
    database_url: str | None = None
    log_level: str | None = None
    log_format: str = "text"
    traces: bool = False
    """Whether what handlers do is part of their job's trace."""


class StartRun(Value, frozen=True, kw_only=True, tag=True):
    """Run this job."""

    claim: Claim
    function: str | None = None
    """`module:name` of the task, for a child that was given no target."""
    memory: int | None = None
    processes: int | None = None
    result_bytes: int = LARGEST_RESULT
    period: Period | None = None
    """What the job of a slot stands for."""


class CancelRun(Value, frozen=True, kw_only=True, tag=True):
    """The run should end: `ctx.cancelled` becomes true, a coroutine is cancelled."""


class Reply(Value, frozen=True, kw_only=True, tag=True):
    """The answer to the Ask of that number."""

    number: int
    body: bytes = b""
    failure: Failure | None = None


class Ready(Value, frozen=True, kw_only=True, tag=True):
    """The app is loaded; or it could not be."""

    failure: Failure | None = None


class Ask(Value, frozen=True, kw_only=True, tag=True):
    """Something that only the worker can do."""

    number: int
    name: str
    body: bytes = b""


class Tell(Value, frozen=True, kw_only=True, tag=True):
    """Something that the worker should know of the run."""

    name: str
    body: bytes = b""


class HandlerEnded(Value, frozen=True, kw_only=True, tag=True):
    """The run is over: its result, or why it failed."""

    result: bytes | None = None
    failure: Failure | None = None
    permanent: bool = False
    retry_after: timedelta | None = None
    rule: int | None = None
    discarded: bool = False
    settled: bool = False
    """Its own transaction has written that it succeeded."""
    snoozed: timedelta | None = None
    awaits: str | None = None
    clean: bool = True
    """Whether the child may run another job: it has not run out of memory, and no process is left."""


ToChild = Hello | StartRun | CancelRun | Reply
ToWorker = Ready | Ask | Tell | HandlerEnded

_encode = msgspec.msgpack.Encoder().encode
_to_child: msgspec.msgpack.Decoder[ToChild] = msgspec.msgpack.Decoder(ToChild)
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)


def encode_frame(frame: ToChild | ToWorker) -> bytes:
    """The frame as it goes over the line."""
    body = _encode(frame)
    if len(body) > LARGEST:
        raise FrameError(f"a frame of {len(body)} bytes; at most {LARGEST} are allowed")
    return _LENGTH.pack(len(body)) + body


def frame_length(header: bytes) -> int:
    """How many bytes follow."""
    (size,) = _LENGTH.unpack(header)
    if size > LARGEST:
        raise FrameError(f"a frame of {size} bytes; at most {LARGEST} are allowed")
    return int(size)


def decode_for_child(body: bytes) -> ToChild:
    """What the worker says."""
    try:
        return _to_child.decode(body)
    except msgspec.MsgspecError as error:
        raise FrameError(str(error)) from None


def decode_for_worker(body: bytes) -> ToWorker:
    """What the child says."""
    try:
        return _to_worker.decode(body)
    except msgspec.MsgspecError as error:
        raise FrameError(str(error)) from None


_STACK = 256 * 1024
"""Of the listening thread: a thread's usual stack would count against a cap on memory."""


_here: list[ChildChannel] = []


def current() -> ChildChannel:
    """The line of the child that this code runs in."""
    if not _here:
        raise LookupError("this process is no child of a worker")
    return _here[0]


class Refused(MainspringError):
    """The worker could not do what the handler's context asked of it."""


class ChildChannel:
    """One socket. `cancelled` is of the run under way."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._sending = threading.Lock()
        self._runs: queue.SimpleQueue[StartRun | None] = queue.SimpleQueue()
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

    def next_run(self) -> StartRun | None:
        """The next job, waited for; None when the worker wants no more of us."""
        return self._runs.get()

    def send(self, frame: ToWorker) -> None:
        """Say this to the worker."""
        text = encode_frame(frame)
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
                    case StartRun():
                        self.cancelled.clear()
                        self._runs.put(frame)
                    case CancelRun():
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

    def _receive(self) -> Hello | StartRun | CancelRun | Reply | None:
        header = self._exactly(HEADER)
        body = None if header is None else self._exactly(frame_length(header))
        return None if body is None else decode_for_child(body)

    def _exactly(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            part = self._channel.recv(min(size - len(parts), 1 << 16))
            if not part:
                return None
            parts += part
        return bytes(parts)
