"""Parents and children, as the kernel sees them. What only Linux has is left out elsewhere."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

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
