"""The processor's time that a server and its processes have taken."""

from __future__ import annotations

import os
from pathlib import Path


def taken(postmaster: int) -> float:
    """Seconds of a PostgreSQL server so far: its processes, and those that have ended."""
    ticks = _ticks(postmaster, ended=True)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        pid = int(stat.parent.name)
        if _parent(pid) == postmaster:
            ticks += _ticks(pid, ended=False)
    return ticks / os.sysconf("SC_CLK_TCK")


def _fields(pid: int) -> list[str]:
    """After the name, which may hold anything. A process may be gone by now: then there are none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _parent(pid: int) -> int:
    fields = _fields(pid)
    return int(fields[1]) if fields else 0


def _ticks(pid: int, *, ended: bool) -> int:
    fields = _fields(pid)
    return sum(map(int, fields[11 : 15 if ended else 13]))
