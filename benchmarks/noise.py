"""How much of the machine others took meanwhile: a figure from a crowded machine shall say so."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


class Noise:
    """Begins when it is made. Only where /proc tells; elsewhere `others` stays None."""

    def __init__(self) -> None:
        self._began = _reading()

    @property
    def others(self) -> float | None:
        """The share of all cores that went to processes which are neither ours nor our descendants."""
        now = _reading()
        if now is None or self._began is None:
            return None
        whole, busy, own = (late - early for late, early in zip(now, self._began, strict=True))
        return min(max((busy - own) / whole, 0.0), 1.0) if whole else None


def _reading() -> tuple[float, float, float] | None:
    """Seconds of all cores, those not idle, and our own."""
    try:
        times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except FileNotFoundError:
        return None
    idle = times[3] + times[4]
    return sum(times) / _TICKS, (sum(times) - idle) / _TICKS, _own() / _TICKS


def _own() -> int:
    """Ticks of this process and its descendants, and of those of them that have ended and were waited for."""
    parents, spent = {}, {}
    for pid, fields in _processes():
        parents[pid] = int(fields[1])
        spent[pid] = sum(map(int, fields[11:15]))
    own, found = [os.getpid()], 0
    while own:
        pid = own.pop()
        found += spent.get(pid, 0)
        own += [child for child, parent in parents.items() if parent == pid]
    return found


def _processes() -> Iterator[tuple[int, list[str]]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name, which may hold anything: the state, then the parent.
                yield int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
