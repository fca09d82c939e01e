"""What a task's child process may use: `@app.task(isolate=True)` or `isolate=Isolation(memory="512MB")`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from mainspring.duration import Duration, duration, written
from mainspring.errors import InvalidArgument

_UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?) ?(kB|MB|GB|KiB|MiB|GiB)", re.ASCII)
_LEAST_MEMORY, _MOST_MEMORY = 64 * 10**6, 2**50
_MOST_PROCESSES = 100_000
_MOST_RUNS = 1_000_000
_LONGEST_GRACE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, init=False)
class Isolation:
    """How a task runs in a process of its own.

    `memory` caps what the process may allocate, the interpreter and the app included; beyond it the
    handler gets a MemoryError. `processes` caps how many processes and threads its tree may have.
    `grace` is how long a handler gets to end once it has been told to, before signals follow. After
    so many `runs` the process is replaced by a fresh one.
    """

    memory: int | None
    processes: int | None
    grace: timedelta
    runs: int

    def __init__(
        self,
        memory: str | int | None = None,
        processes: int | None = None,
        grace: Duration = "2s",
        runs: int = 10_000,
    ) -> None:
        set_field = object.__setattr__
        set_field(self, "memory", None if memory is None else _size(memory, "isolate.memory"))
        if processes is not None:
            _check_whole(processes, "isolate.processes", least=2, most=_MOST_PROCESSES)
        set_field(self, "processes", processes)
        set_field(self, "grace", duration(grace, "isolate.grace"))
        if self.grace > _LONGEST_GRACE:
            raise InvalidArgument("isolate.grace", grace, f"at most {written(_LONGEST_GRACE)}")
        _check_whole(runs, "isolate.runs", least=1, most=_MOST_RUNS)
        set_field(self, "runs", runs)


def valid_isolation(isolate: bool | Isolation) -> Isolation | None:
    """What was asked for; None runs the task in the worker itself."""
    if isinstance(isolate, Isolation):
        return isolate
    if not isinstance(isolate, bool):
        raise InvalidArgument("task.isolate", isolate, 'True, False or Isolation(memory="512MB")')
    return Isolation() if isolate else None


def _size(value: str | int, field: str) -> int:
    size = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (part := _SIZE.fullmatch(value)):
        size = int(float(part[1]) * _UNITS[part[2]])
    if size is None or not _LEAST_MEMORY <= size <= _MOST_MEMORY:
        least = _LEAST_MEMORY // 10**6
        raise InvalidArgument(
            field, value, f'a size such as "512MB" or "2GiB", or a number of bytes; at least {least}MB'
        )
    return size


def _check_whole(value: int, field: str, *, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidArgument(field, value, f"a whole number from {least} to {most}")
