"""The reaper of one child: a process without user code that outlives what it keeps.

It forks the runner, adopts all that the runner's processes leave behind, and ends only when none of them
is left. So the whole tree goes when the runner ends, when the worker says so, and when the worker itself
is gone: its end of the lifeline closes, even by kill -9.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from mainspring.worker.children.process_limits import leave_group

TERMINATE = b"T"
"""Said over the lifeline: send the runner a SIGTERM. Its end, or anything else, means SIGKILL for all."""
STATUS = struct.Struct(">i")
"""The reaper's last word: the runner's exit code, negative for a signal."""
_LOOK_AGAIN_MS = 10


def keep(lifeline: socket.socket, worker: int, run: Callable[[], None]) -> int:
    """Fork; the child calls `run` and never returns. Answer the runner's exit code once no process is
    left of it."""
    reaper = os.getpid()
    # Only the lifeline gives orders: a byte, or the end of the worker.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _noted)
    signal.signal(signal.SIGTERM, _noted)
    adopt_orphans()
    die_with(worker, signal.SIGTERM)
    runner = os.fork()
    if runner == 0:
        _become_runner(reaper, run, lifeline, woken, wake)
    return _watch(runner, lifeline, woken)


def _become_runner(reaper: int, run: Callable[[], None], lifeline: socket.socket, *pipe: int) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        lifeline.close()
        for end in pipe:
            os.close(end)
        os.setpgid(0, 0)
        die_with(reaper, signal.SIGKILL)
        adopt_orphans()  # so that it sees for itself whether a run left processes behind
        run()
        code = 0
    except Exception:  # noqa: BLE001 - no caller is left that would show it
        traceback.print_exc()
    finally:
        os._exit(code)


def _watch(runner: int, lifeline: socket.socket, woken: int) -> int:
    poll = select.poll()
    poll.register(lifeline, select.POLLIN)
    poll.register(woken, select.POLLIN)
    status: int | None = None
    while status is None:
        for number, _ in poll.poll():
            if number == lifeline.fileno():
                if _received(lifeline) == TERMINATE:
                    os.kill(runner, signal.SIGTERM)
                else:
                    return _end_all(runner)
            elif signal.SIGTERM in os.read(woken, 4096):  # the worker is gone
                return _end_all(runner)
        status = _reaped(runner)
    return _end_all(runner, status)


def _end_all(runner: int, status: int | None = None) -> int:
    """Kill until no process is left: orphans become our children, so none escapes."""
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            leave_group(runner)
            return -signal.SIGKILL if status is None else status
        if pid == runner:
            status = os.waitstatus_to_exitcode(how)
        if pid:
            continue
        if status is None:  # not reaped, so that its number is still its own
            with suppress(ProcessLookupError):
                os.killpg(runner, signal.SIGKILL)
        for each in descendants(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        select.select([], [], [], _LOOK_AGAIN_MS / 1000)


def _reaped(runner: int) -> int | None:
    """The runner's exit code if it has ended; orphans that ended are buried on the way."""
    with suppress(ChildProcessError):
        while True:
            pid, how = os.waitpid(-1, os.WNOHANG)
            if pid == runner:
                return os.waitstatus_to_exitcode(how)
            if pid == 0:
                return None
    return None


def _received(lifeline: socket.socket) -> bytes:
    try:
        return lifeline.recv(1)
    except OSError:
        return b""


def _noted(number: int, frame: object) -> None:
    """The wakeup pipe has it."""


_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with(parent: int, by: signal.Signals) -> None:
    """Have this signal sent to us when our parent ends, however it ends; at once if it has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, daemons included."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants(of: int) -> list[int]:
    """Every process below this one, by /proc; empty where there is none."""
    children: dict[int, list[int]] = {}
    for entry in _processes():
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{entry}/stat", "rb") as file:
            # The name is in brackets and may hold anything, brackets too.
            parent = int(file.read().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry))
    found, ahead = [], [of]
    while ahead:
        below = children.pop(ahead.pop(), [])
        found += below
        ahead += below
    return found


def has_children() -> bool:
    """Whether any process is left below this one, ended or not; nothing is reaped."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _processes() -> list[str]:
    try:
        return [each for each in os.listdir("/proc") if each.isdigit()]
    except OSError:
        return []
