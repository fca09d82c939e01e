"""Processes of this machine and what they use, read from /proc; where there is none, nothing is known."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def processes() -> Iterator[tuple[int, list[str]]]:
    """Every process, and its fields of `stat` after the name, which may hold anything: the state, then the
    parent."""
    with contextlib.suppress(FileNotFoundError):
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()


def trees(roots: Iterable[int]) -> dict[int, list[str]]:
    """These processes with all below them, those that are there."""
    fields = dict(processes())
    below: dict[int, list[int]] = {}
    for pid, of in fields.items():
        below.setdefault(int(of[1]), []).append(pid)
    found, left = {}, list(roots)
    while left:
        pid = left.pop()
        if pid in fields and pid not in found:
            found[pid] = fields[pid]
            left += below.get(pid, [])
    return found


def cpu_seconds(roots: Iterable[int]) -> float:
    """Used so far by these, by all below them, and by those of them that have ended and were waited for."""
    return sum(sum(map(int, of[11:15])) for of in trees(roots).values()) / TICKS


def memory_mb(roots: Iterable[int]) -> float:
    """Resident, of these and of all below them; pages that several share are counted for each."""
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(of[21]) for of in trees(roots).values()) * page / 2**20


def kill(roots: Iterable[int]) -> None:
    """These and all below them, at once, as a power cut would."""
    for pid in trees(roots):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
