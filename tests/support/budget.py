"""Bounds on work, measured in processor time, for a busy machine is no bug, and in memory."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time


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
def within_memory(size: int) -> Iterator[None]:
    """Fail if the body takes more than this at any moment, beyond what there was."""
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size, f"{peak} bytes"
