"""What a worker and its child say to each other: length-prefixed msgpack, bounded, never pickle.

    worker → child    Hello, then for each job: Run, perhaps Cancel, and a Reply to every Ask
    child → worker    Ready, then for each job: any number of Tells and Asks, and one Ended

`Ask` is how a handler's context reaches what only the worker has: the store, the lease. The child names
what it wants and sends a body; the worker looks the name up among the `answers` its pool was given, calls
`await answer(claim, body)` and sends back what that returns, or what it raised. A new feature of the
context needs a name, an answer in the worker, and in the child `line.ask(name, body)`, which blocks, or
`await line.aask(name, body)`. Bodies are bytes; JSON is the custom.
`Tell` is the same for what needs no answer: progress, and lines of the log.
"""

from __future__ import annotations

import struct
from datetime import timedelta

import msgspec

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


class Run(Value, frozen=True, kw_only=True, tag=True):
    """Run this job."""

    claim: Claim
    function: str | None = None
    """`module:name` of the task, for a child that was given no target."""
    memory: int | None = None
    processes: int | None = None
    result_bytes: int = LARGEST_RESULT
    period: Period | None = None
    """What the job of a slot stands for."""


class Cancel(Value, frozen=True, kw_only=True, tag=True):
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


class Ended(Value, frozen=True, kw_only=True, tag=True):
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


ToChild = Hello | Run | Cancel | Reply
ToWorker = Ready | Ask | Tell | Ended

_encode = msgspec.msgpack.Encoder().encode
_to_child: msgspec.msgpack.Decoder[ToChild] = msgspec.msgpack.Decoder(ToChild)
_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)


def written(frame: ToChild | ToWorker) -> bytes:
    """The frame as it goes over the line."""
    body = _encode(frame)
    if len(body) > LARGEST:
        raise FrameError(f"a frame of {len(body)} bytes; at most {LARGEST} are allowed")
    return _LENGTH.pack(len(body)) + body


def length(header: bytes) -> int:
    """How many bytes follow."""
    (size,) = _LENGTH.unpack(header)
    if size > LARGEST:
        raise FrameError(f"a frame of {size} bytes; at most {LARGEST} are allowed")
    return int(size)


def for_child(body: bytes) -> ToChild:
    """What the worker says."""
    try:
        return _to_child.decode(body)
    except msgspec.MsgspecError as error:
        raise FrameError(str(error)) from None


def for_worker(body: bytes) -> ToWorker:
    """What the child says."""
    try:
        return _to_worker.decode(body)
    except msgspec.MsgspecError as error:
        raise FrameError(str(error)) from None
