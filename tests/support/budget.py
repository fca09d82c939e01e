"""Bounds on work, measured in calls or in processor time, for a busy machine is no bug, and in memory."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any


@contextmanager
def within_cpu(seconds: float) -> Iterator[None]:
    """Fail if the body works longer. Python's collector is held back: it would walk the whole test run."""
    gc.disable()
    try:
        started = process_time()
        yield
        spent = process_time() - started
    finally:
        gc.enable()
    assert spent < seconds, f"{spent * 1000:.0f} ms"


@contextmanager
def within_calls(most: int) -> Iterator[None]:
    """Fail if the body calls and returns more often: the same figure on every machine, however busy."""
    calls = 0

    def count(*_: Any) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
    assert calls <= most, f"{calls:,} calls"


@contextmanager
def within_memory(size: int) -> Iterator[None]:
    """Fail if the body takes more than this at any moment, beyond what there was."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size, f"{peak} bytes"
