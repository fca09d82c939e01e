"""A bound on work, measured in processor time: a busy machine is no bug."""

from __future__ import annotations

import gc
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
