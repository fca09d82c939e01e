"""Runs one program and outlives every process that comes of it.

A script of its own, started by the worker with nothing of the package loaded. What it is told is JSON in a
descriptor. Its standard input is the lifeline: when it closes, because the worker wants the program to end or
because the worker is dead, everything is ended. Orphans become children of this process
(PR_SET_CHILD_SUBREAPER), whatever session they made for themselves, so none can slip away.
"""

from __future__ import annotations

import ctypes
import json
import os
import pwd
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
_LIMITS = {
    "memory": resource.RLIMIT_AS,
    "processes": resource.RLIMIT_NPROC,
    "cpu": resource.RLIMIT_CPU,
    "file_size": resource.RLIMIT_FSIZE,
    "open_files": resource.RLIMIT_NOFILE,
}
_LOOK_EVERY = 0.02
_DEAD_WITHIN = 10.0
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Where the order is and where the report goes, the worker says; the exit code says if there is one."""
    told, report = map(int, sys.argv[1:])
    os.set_inheritable(report, False)
    with open(f"/proc/self/fd/{told}", "rb") as file:
        order = json.load(file)
    os.close(told)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    # The lifeline may have been copied into another child of the worker's; this cannot be.
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    flock = _Flock(order)
    if os.getppid() != order["parent"]:
        return 1
    folder = _make_folder(order["temporary"], order["uid"], order["gid"])
    try:
        said = flock.run(folder)
    finally:
        flock.end()
        _remove(folder)
    os.write(report, json.dumps(said).encode())
    return 0


class _Flock:
    """The program and all its descendants."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._order = order
        self._most = order["limits"].get("processes")
        self._stop = False
        self._status: int | None = None
        self._why = "ended"
        self._wake, woken = os.pipe()
        for end in (self._wake, woken):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def run(self, folder: str) -> dict[str, object]:
        """Start it and wait for its end, or ours."""
        pid, problem = _start(self._order, folder)
        if problem:
            return {"why": "not started", "problem": problem}
        while self._status is None and not self._stop:
            self._wait(_LOOK_EVERY if self._most else None)
            self._reap(pid)
            if self._most and self._status is None and len(_descendants()) > self._most:
                self._why = "processes"
                break
        if self._stop and self._status is None:
            self._why = "stopped"
            self._ask(pid)
        self.end(pid)
        code = 0 if self._status is None else os.waitstatus_to_exitcode(self._status)
        return {"why": self._why, "code": code}

    def end(self, pid: int = 0) -> None:
        """Freeze all, so that none makes another meanwhile; kill all; see them dead."""
        frozen: set[int] = set()
        while new := _descendants() - frozen:
            for each in new:
                _send(each, signal.SIGSTOP)
            frozen |= new
        deadline = time.monotonic() + _DEAD_WITHIN
        while (left := _descendants()) and time.monotonic() < deadline:
            for each in left:
                _send(each, signal.SIGKILL)
            self._reap(pid)
            if _descendants():
                self._wait(_LOOK_EVERY, lifeline=False)
        self._reap(pid)

    def _ask(self, pid: int) -> None:
        """Let it end by itself, for as long as it is given."""
        deadline = time.monotonic() + self._order["grace"]
        for each in _descendants():
            _send(each, signal.SIGTERM)
        while _descendants() and (rest := deadline - time.monotonic()) > 0:
            self._wait(min(rest, _LOOK_EVERY), lifeline=False)
            self._reap(pid)

    def _wait(self, seconds: float | None, *, lifeline: bool = True) -> None:
        watched = [self._wake, 0] if lifeline else [self._wake]
        readable, _, _ = select.select(watched, [], [], seconds)
        if self._wake in readable:
            with suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if 0 in readable and not os.read(0, 4096):
            self._stop = True

    def _reap(self, pid: int) -> None:
        with suppress(ChildProcessError):
            while True:
                found, status = os.waitpid(-1, os.WNOHANG)
                if found == 0:
                    return
                if found == pid:
                    self._status = status

    def _on_signal(self, *_: object) -> None:
        self._stop = True


def _start(order: dict[str, Any], folder: str) -> tuple[int, str]:
    """Its process id, or why it could not be started."""
    reading, writing = os.pipe()  # closed by a successful exec
    pid = os.fork()
    if pid == 0:
        try:
            _become(order, folder)
        except Exception as problem:  # noqa: BLE001 - the parent is told, whatever it was
            os.write(writing, str(problem).encode()[:1000])
        os._exit(127)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        return pid, said.read().decode("utf-8", "replace")


def _become(order: dict[str, Any], folder: str) -> NoReturn:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.chdir(folder)
    for number in (
        signal.SIGCHLD,
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGPIPE,
        signal.SIGXFSZ,
    ):
        signal.signal(number, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for name, value in order["limits"].items():
        resource.setrlimit(_LIMITS[name], (value, value))
    if order["uid"] is not None:
        os.initgroups(pwd.getpwuid(order["uid"]).pw_name, order["gid"])
        os.setgid(order["gid"])
        os.setuid(order["uid"])
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # after setuid, which would clear it
    env = {**order["env"], "HOME": folder, "TMPDIR": folder, "PWD": folder, **order["own"]}
    os.execvpe(order["argv"][0], order["argv"], env)  # noqa: S606 - a program without a shell is the point


def _descendants() -> set[int]:
    """Every process that has us above it."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    above = [os.getpid()]
    while above:
        below = children.get(above.pop(), [])
        found.update(below)
        above.extend(below)
    return found


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _make_folder(parent: str, uid: int | None, gid: int | None) -> str:
    folder = f"{parent}/mainspring-{os.urandom(8).hex()}"
    os.mkdir(folder, 0o700)
    if uid is not None and gid is not None:
        os.chown(folder, uid, gid)
    return folder


def _remove(folder: str) -> None:
    for above, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            path = f"{above}/{name}"
            with suppress(OSError):
                if os.path.isdir(path) and not os.path.islink(path):
                    os.rmdir(path)
                else:
                    os.unlink(path)
    with suppress(OSError):
        os.rmdir(folder)


if __name__ == "__main__":
    sys.exit(main())
