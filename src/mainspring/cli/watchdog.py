"""Sees to it that a process which is to end does end, whatever the code of its handlers does.

It is a thread of its own: an event loop that a handler blocks, a handler that swallows its cancellation, a
thread that never returns and a hook that hangs at the end of the interpreter do not hold it up. It hears of
signals where Python's C code does, so that it knows of a SIGTERM although the main thread is in code that
looks at none. Only code that keeps the interpreter's lock for ever stops it; against that there is SIGKILL.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import FrameType
from typing import Any

from mainspring.clock import SystemClock

DRAIN_WITHIN = timedelta(seconds=20)
"""Beyond `worker.shutdown_timeout`: all that an orderly end may take, and less than the supervisor waits."""
ABORT_WITHIN = timedelta(seconds=10)
"""After a second signal."""
FINISH_WITHIN = timedelta(seconds=5)
"""For the app's own threads and `atexit` hooks, once we have ended."""
_LAST_WORDS_WITHIN = 8.0
_FLUSH_WITHIN = 2.0
_CLOCK = SystemClock()
"""Not the app's own, which may stand still."""
_POKE = b"\0"
"""No number of a signal."""
STOPPING = (signal.SIGTERM, signal.SIGINT)
ORPHANED = getattr(signal, "SIGRTMAX", signal.SIGTERM)
"""The supervisor has died. This signal is not SIGTERM, because the kernel sends it once for each thread that
the supervisor had, and a second SIGTERM ends the drain."""

_current: list[Watchdog] = []


class Watchdog:
    """One per process that serves. `drain`, `abort` and `finish` only ever bring the end nearer."""

    def __init__(self, grace: timedelta, *, last_words: Callable[[], int], wake: Callable[[], None]) -> None:
        """`last_words` gives back what can be given back, says so, and answers the exit code. `wake` has the
        event loop look whether a signal has come."""
        self._grace = grace
        self._last_words, self._wake = last_words, wake
        self._ear, self._mouth = socket.socketpair()
        for end in (self._ear, self._mouth):
            end.setblocking(False)
        self._next_ear = -1
        """Whose file for signals we took: the event loop's, if it had one."""
        self._deadline: float | None = None
        self._lock = threading.Lock()
        self._handler: Callable[[int, FrameType | None], None] | None = None
        self._signals = 0
        self._code: int | None = None
        """What to exit with, once everything of ours has ended."""
        threading.Thread(target=self._watch, name="mainspring-watchdog", daemon=True).start()
        _current[:] = [self]

    def listen(self, handler: Callable[[int, FrameType | None], None]) -> None:
        """Have this called for each signal that asks for the end: not by the event loop, which hears of none
        while a handler blocks it."""
        self._handler = handler
        for number in {*STOPPING, ORPHANED}:
            signal.signal(number, handler)
        self.hear_signals()

    def hear_signals(self) -> None:
        """Be told of signals by C code, and tell the event loop. Call it in the main thread, whenever the
        event loop has begun: some loops take the file for themselves then."""
        before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        if before != self._mouth.fileno():
            self._next_ear = before

    def drain(self) -> None:
        """The end was asked for, or has come by itself."""
        self._end_within(self._grace + DRAIN_WITHIN)

    def abort(self) -> None:
        """It was asked for again."""
        self._end_within(ABORT_WITHIN)

    def finish(self, code: int) -> None:
        """All of ours has ended; now the interpreter does, with this code."""
        self._code = code
        self._end_within(FINISH_WITHIN)

    def forget(self) -> None:
        """In a process that was forked from ours: its signals are none of ours."""
        _current.clear()
        with suppress(ValueError):
            signal.set_wakeup_fd(-1)
            usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler}
            for number in {*STOPPING, ORPHANED}:
                if signal.getsignal(number) == self._handler:
                    signal.signal(number, usual.get(number, signal.SIG_DFL))

    def _end_within(self, length: timedelta) -> None:
        deadline = _CLOCK.monotonic() + length.total_seconds()
        with self._lock:
            if self._deadline is not None and self._deadline <= deadline:
                return
            self._deadline = deadline
        with suppress(OSError):
            self._mouth.send(_POKE)
        with suppress(Exception):  # there is no file to write to
            # In C, so that it comes even when no thread of ours can run.
            left = length.total_seconds() + _LAST_WORDS_WITHIN + 2
            faulthandler.dump_traceback_later(left, exit=True, file=sys.__stderr__ or sys.stderr)

    def _watch(self) -> None:
        while True:
            with self._lock:
                deadline = self._deadline
            left = None if deadline is None else max(0.0, deadline - _CLOCK.monotonic())
            if left == 0:
                self._end()
            ready, _, _ = select.select([self._ear], [], [], left)
            if ready:
                self._hear(self._ear.recv(4096))

    def _hear(self, numbers: bytes) -> None:
        told = numbers.replace(_POKE, b"")
        if not told:
            return
        if self._next_ear >= 0:
            with suppress(OSError):
                os.write(self._next_ear, told)
        for number in told:
            if number in STOPPING:
                self._signals += 1
                self.drain() if self._signals == 1 else self.abort()
            elif number == ORPHANED:
                self.drain()
        self._wake()

    def _end(self) -> None:
        code = [1 if self._code is None else self._code]

        def last() -> None:
            if self._code is None:
                code[0] = self._last_words()
            else:
                _say_what_is_left()

        said = threading.Thread(target=last, name="mainspring-last-words", daemon=True)
        with suppress(RuntimeError):  # there is no thread to be had
            said.start()
            said.join(_LAST_WORDS_WITHIN)
        leave_at_once(code[0])


def finish(code: object) -> None:
    """The command has ended, and says so to whom it was started by."""
    for watchdog in _current:
        watchdog.finish(code if isinstance(code, int) else int(code is not None))


def leave_at_once(code: int) -> None:
    """End this process here and now, from any thread; what can be written out is."""

    def flush() -> None:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()

    # Whoever holds a lock of the log or of a stream may be what does not end.
    flushing = threading.Thread(target=flush, name="mainspring-flush", daemon=True)
    with suppress(RuntimeError):
        flushing.start()
        flushing.join(_FLUSH_WITHIN)
    os._exit(code)


def _say_what_is_left() -> None:
    ours = ("mainspring-",)
    threads = [
        each.name
        for each in threading.enumerate()
        if not each.daemon and each is not threading.main_thread() and not each.name.startswith(ours)
    ]
    what = (
        f"threads of the app that go on ({', '.join(threads[:5])})"
        if threads
        else "an atexit hook of the app"
    )
    logging.getLogger("mainspring").warning("ended without %s", what)


def _in_child() -> None:
    for watchdog in _current:
        watchdog.forget()


os.register_at_fork(after_in_child=_in_child)
