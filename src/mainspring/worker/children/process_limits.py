"""What a run may use, as limits of the process that runs it. They guard against accidents: code that
wants to can lift them."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mainspring.errors import MainspringError

_CGROUPS = "/sys/fs/cgroup"
_NO_LIMIT = "max"


class CapUnavailable(MainspringError):
    """This machine offers no way to hold the cap that was asked for."""


@contextmanager
def capped(memory: int | None, processes: int | None) -> Iterator[None]:
    """Within these limits while the body runs."""
    with _memory(memory), _processes(processes):
        yield


@contextmanager
def _memory(size: int | None) -> Iterator[None]:
    if size is None:
        yield
        return
    # Linux counts the memory that a process may write to and does not share: a cap that means memory. The
    # whole address space, which is all that others can limit, holds reserves that are never used.
    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    before, most = resource.getrlimit(kind)
    resource.setrlimit(kind, (size if most == resource.RLIM_INFINITY else min(size, most), most))
    try:
        yield
    finally:
        resource.setrlimit(kind, (before, most))


@contextmanager
def _processes(count: int | None) -> Iterator[None]:
    if count is None:
        yield
        return
    if folder := _own_group():
        _write(f"{folder}/pids.max", str(count))
        try:
            yield
        finally:
            _write(f"{folder}/pids.max", _NO_LIMIT)
        return
    if os.getuid() == 0:  # whom the other limit does not bind
        raise CapUnavailable(
            "isolate.processes: no pids cgroup can be made here, and root has no other limit"
        )
    before, most = resource.getrlimit(resource.RLIMIT_NPROC)
    cap = _tasks_of(os.getuid()) + count  # the kernel counts all that this user runs
    resource.setrlimit(
        resource.RLIMIT_NPROC, (cap if most == resource.RLIM_INFINITY else min(cap, most), most)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (before, most))


def _own_group() -> str | None:
    """A pids cgroup with this process in it, below the one it started in; None if it may have none."""
    folder = group_of(os.getpid())
    if folder is None:
        return None
    try:
        os.makedirs(folder, exist_ok=True)
        _write(f"{folder}/pids.max", _NO_LIMIT)  # there only if the controller is on
        with open(f"{folder}/cgroup.procs") as file:
            if str(os.getpid()) not in file.read().split():
                _write(f"{folder}/cgroup.procs", str(os.getpid()))
    except OSError:
        leave_group(os.getpid())
        return None
    return folder


def group_of(pid: int) -> str | None:
    """Where the pids cgroup of that process's own is, or would be."""
    base = _pids_cgroup()
    return None if base is None else f"{base}/mainspring-{pid}"


def leave_group(pid: int) -> None:
    """Take the cgroup of a process that has ended away, if it had one."""
    if folder := group_of(pid):
        with suppress(OSError):  # it never had one
            os.rmdir(folder)


def _pids_cgroup() -> str | None:
    """The folder of the pids cgroup that this process belongs to, whichever version it is of."""
    with suppress(OSError), open("/proc/self/cgroup") as file:
        found = dict(line.rstrip("\n").split(":", 2)[1:] for line in file)
        for controllers, path in found.items():
            if "pids" in controllers.split(","):
                return _above(f"{_CGROUPS}/{controllers}{path.rstrip('/')}")
        if "" in found:
            return _above(f"{_CGROUPS}{found[''].rstrip('/')}")
    return None


def _above(folder: str) -> str:
    """Not below a cgroup of our own: the process may be in it already."""
    parent, _, last = folder.rpartition("/")
    return parent if last == f"mainspring-{os.getpid()}" else folder


def _tasks_of(user: int) -> int:
    """How many processes and threads the user has, as the kernel counts them."""
    count = 0
    for entry in os.listdir("/proc"):
        with suppress(OSError):
            if entry.isdigit() and os.stat(f"/proc/{entry}").st_uid == user:
                count += len(os.listdir(f"/proc/{entry}/task"))
    return count


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
