"""One child process, as its worker sees it: started, given jobs to run, and ended."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Self, cast

from mainspring.errors import InvalidArgument
from mainspring.model.job import Claim, Failure
from mainspring.model.value import Value
from mainspring.tasks.task import Task
from mainspring.waiting import until
from mainspring.worker.children.child_channel import (
    HEADER,
    Ask,
    CancelRun,
    FrameError,
    HandlerEnded,
    Hello,
    Ready,
    Reply,
    StartRun,
    Tell,
    ToChild,
    ToWorker,
    decode_for_worker,
    encode_frame,
    frame_length,
)
from mainspring.worker.children.child_reaper import STATUS, TERMINATE
from mainspring.worker.outcomes import failure_of

START_WITHIN = timedelta(seconds=60)
"""How long the app may take to load."""
TERMINATE_WITHIN = timedelta(seconds=1)
"""How long a handler has between SIGTERM and SIGKILL."""
KILL_WITHIN = timedelta(seconds=10)
_LINE_CLOSES_WITHIN = 1.0
_KILL = b"K"

Answer = Callable[[Claim, bytes], Awaitable[bytes]]
Answers = Mapping[str, Answer]
Told = Callable[[Claim, Tell], None]
"""Hears what a handler says of its run."""


class ChildLost(Exception):
    """The child ended without an answer; `failure` says how."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Child:
    """A reaper and its runner. One run at a time."""

    def __init__(
        self, reaper: subprocess.Popen[bytes], voice: socket.socket, answers: Answers, told: Told
    ) -> None:
        self._reaper = reaper
        self._voice = voice
        """Our end of the lifeline for what we say: sent at once, also when the event loop has ended."""
        self._answers = answers
        self._told = told
        self._answering: set[asyncio.Task[None]] = set()
        self._channel: asyncio.WriteTransport | None = None
        self._expected: asyncio.Future[Ready | HandlerEnded] | None = None
        self._claim: Claim | None = None
        self._status: int | None = None
        self.runs = 0
        self.gone = asyncio.Event()
        """Set when no process is left of it."""

    @classmethod
    async def start(cls, launch: Launch, answers: Answers, told: Told) -> Self:
        """Start one and wait until its app is loaded; ChildLost if it cannot be."""
        loop = asyncio.get_running_loop()
        try:
            reaper, voice, ear, channel = _launched(launch)
        except OSError as error:  # no process, or no descriptor, is to be had
            raise ChildLost(failure_of(error)) from None
        child = cls(reaper, voice, answers, told)
        await loop.create_unix_connection(lambda: _Ear(child._ended), sock=ear)
        child._channel, _ = await loop.create_unix_connection(
            lambda: _ChannelProtocol(child._heard, child._hung_up), sock=channel
        )
        await child._get_ready(launch)
        return child

    async def run(self, run: StartRun) -> HandlerEnded:
        """Have this job run; ChildLost if the child dies of it."""
        self.runs += 1
        self._claim = run.claim
        ended = await self._answer_to(run)
        assert isinstance(ended, HandlerEnded)  # noqa: S101 - `_heard` takes nothing else for an answer
        return ended

    async def end(self, grace: timedelta) -> HandlerEnded | None:
        """Tell the run to end, then make it: answer what it ended with, if it did in time. When this
        returns, no process is left of the child."""
        ended = None
        if not self.gone.is_set():
            self._say(CancelRun())
            expected = self._expected
            if expected is not None and not expected.done():
                await asyncio.wait({expected}, timeout=grace.total_seconds())
            if expected is not None and expected.done() and expected.exception() is None:
                answer = expected.result()
                ended = answer if isinstance(answer, HandlerEnded) else None
            elif not self.gone.is_set():
                self._signal(TERMINATE)
                await until(self.gone, TERMINATE_WITHIN)
        await self.kill()
        return ended

    async def kill(self) -> None:
        """End every process of it, at once."""
        self.doom()
        if not await until(self.gone, KILL_WITHIN):
            self._reaper.kill()  # not even its reaper answers; the runner dies with it
            await until(self.gone, KILL_WITHIN)

    def doom(self) -> None:
        """Order the end of every process of it, and do not wait."""
        self._signal(_KILL)

    async def _get_ready(self, launch: Launch) -> None:
        try:
            async with asyncio.timeout(START_WITHIN.total_seconds()):
                ready = await self._answer_to(launch.hello)
        except TimeoutError:
            await self.kill()
            message = f"the app was not loaded within {START_WITHIN.total_seconds():g} s"
            raise ChildLost(Failure(type="ChildNotReady", message=message)) from None
        except asyncio.CancelledError:
            await self.kill()
            raise
        if isinstance(ready, Ready) and ready.failure is not None:
            await self.kill()
            raise ChildLost(ready.failure)

    async def _answer_to(self, frame: ToChild) -> Ready | HandlerEnded:
        self._expected = asyncio.get_running_loop().create_future()
        # The waiting task may be cancelled; what comes then is looked at by `end`, or not at all.
        self._expected.add_done_callback(lambda done: done.cancelled() or done.exception())
        if self.gone.is_set():
            self._lose()
        self._say(frame)
        return await asyncio.shield(self._expected)

    def _heard(self, frame: ToWorker) -> None:
        if isinstance(frame, Ask):
            task = asyncio.ensure_future(self._reply(frame))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif isinstance(frame, Tell):
            if self._claim is not None:
                self._told(self._claim, frame)
        elif self._expected is not None and not self._expected.done():
            self._expected.set_result(frame)

    async def _reply(self, ask: Ask) -> None:
        try:
            if self._claim is None:
                raise LookupError("no job is running")
            body = await self._answers[ask.name](self._claim, ask.body)
            self._say(Reply(number=ask.number, body=body))
        except Exception as error:  # noqa: BLE001 - whatever it was, the handler waits for an answer
            self._say(Reply(number=ask.number, failure=failure_of(error)))

    def _hung_up(self) -> None:
        """The channel has closed. Either the child is ending, or its handler closed what it should
        not have: then nothing can be heard of it any more."""
        if self.gone.is_set():
            self._lose()
        else:
            asyncio.get_running_loop().call_later(_LINE_CLOSES_WITHIN, self.doom)

    def _ended(self, status: int | None) -> None:
        """No process is left."""
        self._status = status
        self._voice.close()
        self._reaper.wait()  # it has closed its files, so it is a zombie already, or in an instant
        for task in self._answering:
            task.cancel()
        self.gone.set()
        if self._channel is None or self._channel.is_closing():
            self._lose()
        else:
            # The answer may have been sent before the end and not been read yet.
            asyncio.get_running_loop().call_later(_LINE_CLOSES_WITHIN, self._channel.abort)

    def _lose(self) -> None:
        if self._expected is not None and not self._expected.done():
            self._expected.set_exception(ChildLost(crash_failure(self._status)))

    def _say(self, frame: ToChild) -> None:
        if self._channel is not None and not self._channel.is_closing():
            self._channel.write(encode_frame(frame))

    def _signal(self, word: bytes) -> None:
        with suppress(OSError):  # it is gone
            self._voice.send(word)


def crash_failure(status: int | None) -> Failure:
    """For a handler whose process did not survive it."""
    if status is None:
        how = "its process was lost"
    elif status >= 0:
        how = f"its process ended with exit code {status}"
    else:
        how = f"its process was killed by {_signal_name(-status)}"
        if status == -signal.SIGKILL:
            how += "; the kernel does that when memory runs out"
    return Failure(type="ChildCrashed", message=how)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _ChannelProtocol(asyncio.Protocol):
    """Cuts what comes into frames."""

    def __init__(self, heard: Callable[[ToWorker], None], hung_up: Callable[[], None]) -> None:
        self._heard, self._on_end = heard, hung_up
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are none by their class

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            while len(self._buffer) >= HEADER:
                end = HEADER + frame_length(bytes(self._buffer[:HEADER]))
                if len(self._buffer) < end:
                    return
                frame = decode_for_worker(bytes(self._buffer[HEADER:end]))
                del self._buffer[:end]
                self._heard(frame)
        except FrameError:
            # User code wrote into our line. What the child says is worth nothing from here on.
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._on_end()


class _Ear(asyncio.Protocol):
    """Hears the reaper's last word."""

    def __init__(self, ended: Callable[[int | None], None]) -> None:
        self._on_end = ended
        self._heard = b""

    def data_received(self, data: bytes) -> None:
        self._heard += data

    def connection_lost(self, error: Exception | None) -> None:
        status = STATUS.unpack(self._heard)[0] if len(self._heard) == STATUS.size else None
        self._on_end(status)


def _launched(
    launch: Launch,
) -> tuple[subprocess.Popen[bytes], socket.socket, socket.socket, socket.socket]:
    """A reaper; our two ends of its lifeline, to speak and to hear, and our end of the channel."""
    with ExitStack() as ours, ExitStack() as theirs:
        channel, their_channel = socket.socketpair()
        ours.enter_context(channel)
        theirs.enter_context(their_channel)
        ear, lifeline = socket.socketpair()
        ours.enter_context(ear)
        theirs.enter_context(lifeline)
        voice = ours.enter_context(ear.dup())
        numbers = (os.getpid(), their_channel.fileno(), lifeline.fileno())
        reaper = subprocess.Popen(  # noqa: S603 - our own command
            [*launch.command, *map(str, numbers)],
            pass_fds=numbers[1:],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        ours.pop_all()
    return reaper, voice, ear, channel


class Launch(Value, frozen=True, kw_only=True):
    """The command of a child, and the first frame that it gets."""

    command: tuple[str, ...]
    hello: Hello

    def reaches(self, task: Task[..., object]) -> bool:
        """Whether a child would find the task's function."""
        return self.hello.target is not None or function_name(task) is not None

    def check(self, task: Task[..., object]) -> None:
        """Refuse a task that wants a child which could not find it."""
        if task.isolation is not None and not self.reaches(task):
            raise InvalidArgument(
                "task.isolate",
                task.name,
                "a function at the top of a module other than __main__, or a worker that was told where "
                "its app is (`mainspring worker APP`): a child process has to find it again",
            )


def function_name(task: Task[..., object]) -> str | None:
    """`module:name` under which another process finds the same function; None if none would."""
    module = getattr(task.function, "__module__", None)
    path = getattr(task.function, "__qualname__", "")
    if not module or module == "__main__" or module not in sys.modules:
        return None
    found: object = sys.modules[module]
    for name in path.split("."):
        found = getattr(found, name, None)
    if isinstance(found, Task):
        found = found.function
    return f"{module}:{path}" if found is task.function else None
