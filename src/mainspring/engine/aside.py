"""A plain function in a thread of its own, so that the event loop goes on."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")

LINGER = timedelta(seconds=2)
"""How long a function gets to notice that its run should end, before that ends without it."""


async def aside(call: Callable[[], T]) -> T:
    """What it returns or raises. The thread is a daemon: one that never ends does not keep the process."""
    future: Future[T] = Future()
    within = contextvars.copy_context().run

    def work() -> None:
        try:
            future.set_result(within(as_a_future_can_carry, call))
        except BaseException as error:  # noqa: BLE001 - not swallowed: whoever waits gets it
            future.set_exception(error)

    threading.Thread(target=work, name="mainspring-step", daemon=True).start()
    waiting = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        # It cannot be stopped: its job should not begin elsewhere while it is about to end here.
        await asyncio.wait([waiting], timeout=LINGER.total_seconds())
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody wants to hear
        raise


def as_a_future_can_carry(call: Callable[[], T]) -> T:
    """Call it; what a future cannot carry would hang the job instead of failing it."""
    try:
        return call()
    except (StopIteration, GeneratorExit) as error:
        raise RuntimeError(f"the handler raised {type(error).__name__}") from error
