"""Counts what the interpreter does, in every thread that starts while it looks."""

from __future__ import annotations

import gc
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Executed:
    """So many so far. The counters are C's own: two threads cannot lose a step between them."""

    def __init__(self) -> None:
        self._instructions = itertools.count()
        self._calls = itertools.count()

    def enter(self, frame: FrameType, event: str, arg: object) -> Callable[[FrameType, str, object], None]:
        """Given to `sys.settrace`: a frame begins, or goes on."""
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        return self.step

    def step(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "opcode":
            next(self._instructions)

    def call(self, frame: FrameType, event: str, arg: object) -> None:
        """Given to `sys.setprofile`."""
        if event == "c_call":
            next(self._calls)

    def taken(self) -> tuple[int, int]:
        """Instructions and calls. Once: looking at such a counter moves it."""
        return next(self._instructions), next(self._calls)


@contextmanager
def executing() -> Iterator[Executed]:
    """Count what this thread and those it starts do. The collector rests: when it comes by is chance."""
    if sys.gettrace() is not None or sys.getprofile() is not None:
        raise RuntimeError("something else (a debugger, a coverage tool) follows this interpreter")
    executed = Executed()
    gc.collect()
    gc.disable()
    threading.settrace(executed.enter)
    threading.setprofile(executed.call)
    sys.setprofile(executed.call)
    sys.settrace(executed.enter)
    try:
        yield executed
    finally:
        sys.settrace(None)
        sys.setprofile(None)
        threading.settrace(None)
        threading.setprofile(None)
        gc.enable()
