"""A program started through its shepherd, from the worker's side."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from mainspring.config import variables
from mainspring.model.value import Value
from mainspring.waiting import pause, until

_SHEPHERD = Path(__file__).with_name("shepherd.py")
_DEAD_WITHIN = timedelta(seconds=15)
"""How long everything may take to be dead, once no more grace is given."""
_READ_WITHIN = timedelta(seconds=5)
_MOMENT = timedelta(milliseconds=1)
_CHUNK = 64 * 1024
_CALM_AFTER = 1024 * 1024
_CALM = timedelta(milliseconds=10)


class Order(Value, frozen=True, kw_only=True):
    """What to start, and under which conditions."""

    argv: Sequence[str]
    env: Mapping[str, str]
    own: Mapping[str, str]
    """Variables that say which job this is: nothing else may set them."""
    limits: Mapping[str, int]
    uid: int | None
    gid: int | None
    grace: timedelta


class Ended(Value, frozen=True, kw_only=True):
    """How it ended, and the last of what it wrote."""

    why: str
    """ended, stopped, processes (too many of them), not started, or lost (the shepherd itself was killed)."""
    code: int
    """Its exit code; negative for the signal that ended it."""
    problem: str
    stdout: bytes
    stderr: bytes
    truncated: bool


async def run_program(order: Order, *, timeout: timedelta, keep: int) -> Ended:  # noqa: ASYNC109 - the program is ended in good order, which a cancellation from outside would not wait for
    """Run it to its end. When its time is up, or we are cancelled, all of its processes are ended first."""
    shepherd = _Shepherd(order)
    stdout, stderr = (_Tail(end, keep) for end in shepherd.output)
    try:
        late = not await shepherd.ends_within(timeout)
    finally:
        # Whatever became of us, see it dead before its job can begin elsewhere. If we are not even given
        # the time for that, it goes on, here or in the shepherd alone.
        await asyncio.shield(asyncio.create_task(_settled(shepherd, [stdout, stderr], order.grace)))
    said = shepherd.report()
    return Ended(
        why="late" if late else str(said.get("why", "lost")),
        code=int(str(said.get("code", 0))),
        problem=str(said.get("problem", "")),
        stdout=stdout.kept,
        stderr=stderr.kept,
        truncated=stdout.is_cut or stderr.is_cut,
    )


async def _settled(shepherd: _Shepherd, output: Sequence[_Tail], grace: timedelta) -> None:
    await shepherd.end(grace)
    # If somebody killed the shepherd, what it guarded may hold its output open for ever.
    await asyncio.wait([each.reading for each in output], timeout=_READ_WITHIN.total_seconds())
    for each in output:
        each.reading.cancel()
    await asyncio.wait([each.reading for each in output])


class _Shepherd:
    """The process between us and the program.

    Not asyncio's kind of process: that one is killed when nobody holds it any more, and this one must never
    be, for it is what ends the others. It has ended when its report has: nobody else holds that pipe.
    """

    def __init__(self, order: Order) -> None:
        self._loop = asyncio.get_running_loop()
        self._said = b""
        self._ended = asyncio.Event()
        with ExitStack() as on_failure, ExitStack() as its_own:

            def pipe() -> tuple[int, int]:
                ends = os.pipe()
                for end in ends:
                    on_failure.callback(os.close, end)
                return ends

            told = its_own.enter_context(os.fdopen(os.memfd_create("order"), "wb"))
            told.write(_written(order))
            told.flush()
            lifeline, self._lifeline = pipe()
            self._report, report = pipe()
            out, stdout = pipe()
            err, stderr = pipe()
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                # Isolated: neither the worker's variables nor its folder say what is imported.
                [sys.executable, "-I", "-S", str(_SHEPHERD), str(told.fileno()), str(report)],
                stdin=lifeline,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(told.fileno(), report),
                start_new_session=True,
                env=variables(["LD_LIBRARY_PATH"]),  # some builds of Python need it to start at all
            )
            on_failure.pop_all()
        for end in (lifeline, report, stdout, stderr):
            os.close(end)
        self.output = (out, err)
        os.set_blocking(self._report, False)
        self._loop.add_reader(self._report, self._hear)

    async def ends_within(self, at_most: timedelta) -> bool:
        """Wait; answer whether it has ended."""
        return await until(self._ended, at_most)

    async def end(self, grace: timedelta) -> None:
        """Cut the lifeline, and see it dead. What holds on even then, no signal can end."""
        os.close(self._lifeline)
        await until(self._ended, grace + _DEAD_WITHIN)
        self._loop.remove_reader(self._report)
        os.close(self._report)
        if self._ended.is_set():
            while self._process.poll() is None:
                await pause(_MOMENT)

    def _hear(self) -> None:
        more = os.read(self._report, 65536)
        self._said += more
        if not more:
            self._loop.remove_reader(self._report)
            self._ended.set()

    def report(self) -> dict[str, object]:
        """What it said; nothing, if it was killed."""
        said: dict[str, object] = json.loads(self._said) if self._said else {}
        return said


class _Tail:
    """Reads to the end, and keeps the last of it: that is where a program says what went wrong."""

    def __init__(self, end: int, keep: int) -> None:
        self._keep = keep
        self._total = 0
        self.kept = b""
        self.reading = asyncio.create_task(self._read(end))

    @property
    def is_cut(self) -> bool:
        return self._total > self._keep

    async def _read(self, end: int) -> None:
        stream = asyncio.StreamReader(limit=_CHUNK)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(end, "rb", buffering=0)
        )
        try:
            while chunk := await stream.read(_CHUNK):
                self._total += len(chunk)
                self.kept = (self.kept + chunk)[-self._keep :] if self._keep else b""
                if self._total > _CALM_AFTER:
                    await pause(_CALM)  # a program that never stops writing waits for us, not we for it
        finally:
            transport.close()


def _written(order: Order) -> bytes:
    fields = {
        "argv": list(order.argv),
        "env": dict(order.env),
        "own": dict(order.own),
        "limits": dict(order.limits),
        "uid": order.uid,
        "gid": order.gid,
        "grace": order.grace.total_seconds(),
        "parent": os.getpid(),
        "temporary": tempfile.gettempdir(),
    }
    return json.dumps(fields).encode()
