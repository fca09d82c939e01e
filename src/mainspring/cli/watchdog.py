"""Ends a process that must end, whatever the code of its handlers does.

The watchdog has its own thread. These do not delay it: a handler that blocks the event loop, a handler that
swallows its cancellation, a thread that never returns, and a hook that hangs at the end of the interpreter.
Python's C code reports signals to the watchdog, so it receives a SIGTERM although the main thread runs code
that checks no signals. Only code that keeps the interpreter's lock for ever stops the watchdog; then SIGKILL
helps.
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
"""The longest orderly end after `worker.shutdown_timeout`. It is shorter than the wait of the supervisor."""
ABORT_WITHIN = timedelta(seconds=10)
"""The longest end after a second signal."""
FINISH_WITHIN = timedelta(seconds=5)
"""The time for the app's own threads and `atexit` hooks, after our parts have ended."""
_LAST_WORDS_WITHIN = 8.0
_FLUSH_WITHIN = 2.0
_CLOCK = SystemClock()
"""Not the clock of the app, which a test may have stopped."""
_POKE = b"\0"
"""This byte is the number of no signal."""
STOPPING = (signal.SIGTERM, signal.SIGINT)
ORPHANED = getattr(signal, "SIGRTMAX", signal.SIGTERM)
"""The supervisor has died. This signal is not SIGTERM, because the kernel sends it once for each thread that
the supervisor had, and a second SIGTERM ends the drain."""

_current: list[Watchdog] = []


class Watchdog:
    """One for each serving process. `drain`, `abort` and `finish` set a deadline, and never a later one."""

    def __init__(self, grace: timedelta, *, last_words: Callable[[], int], wake: Callable[[], None]) -> None:
        """`last_words` returns jobs to the queue, logs this, and answers the exit code. `wake` wakes the
        event loop, so that it checks for signals."""
        self._grace = grace
        self._last_words, self._wake = last_words, wake
        self._ear, self._mouth = socket.socketpair()
        for end in (self._ear, self._mouth):
            end.setblocking(False)
        self._next_ear = -1
        """The wake-up file of the event loop, which ours has replaced; -1 if there was none."""
        self._deadline: float | None = None
        self._lock = threading.Lock()
        self._handler: Callable[[int, FrameType | None], None] | None = None
        self._signals = 0
        self._code: int | None = None
        """The exit code, after our parts have ended."""
        threading.Thread(target=self._watch, name="mainspring-watchdog", daemon=True).start()
        _current[:] = [self]

    def listen(self, handler: Callable[[int, FrameType | None], None]) -> None:
        """Install this handler for each signal that asks for the end. The event loop does not install it,
        because a blocked event loop handles no signals."""
        self._handler = handler
        for number in {*STOPPING, ORPHANED}:
            signal.signal(number, handler)
        self.hear_signals()

    def hear_signals(self) -> None:
        """Receive signals from C code, and pass them on to the event loop. Call this in the main thread each
        time the event loop has begun, because some event loops then set their own wake-up file."""
        before = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        if before != self._mouth.fileno():
            self._next_ear = before

    def drain(self) -> None:
        """The end was requested, or has begun without a request."""
        self._end_within(self._grace + DRAIN_WITHIN)

    def abort(self) -> None:
        """The end was requested again."""
        self._end_within(ABORT_WITHIN)

    def finish(self, code: int) -> None:
        """Our parts have ended. Now the interpreter ends, with this code."""
        self._code = code
        self._end_within(FINISH_WITHIN)

    def forget(self) -> None:
        """Called in a forked child: do not handle its signals."""
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
            # A timer in C, which works even if no thread can run.
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
        with suppress(RuntimeError):  # no thread can be started
            said.start()
            said.join(_LAST_WORDS_WITHIN)
        leave_at_once(code[0])


def finish(code: object) -> None:
    """Called when the command has ended, with its exit code."""
    for watchdog in _current:
        watchdog.finish(code if isinstance(code, int) else int(code is not None))


def leave_at_once(code: int) -> None:
    """End this process at once, from any thread. Logs and streams are flushed if possible."""

    def flush() -> None:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()

    # A thread that never ends may hold a lock of the log or of a stream.
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
