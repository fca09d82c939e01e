"""The only module that waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from mainspring.errors import StoreUnavailable

T = TypeVar("T")

NOW = timedelta()


async def pause(length: timedelta) -> None:
    """Let this much time pass."""
    await asyncio.sleep(length.total_seconds())


async def until(event: asyncio.Event, at_most: timedelta) -> bool:
    """Wait for the event, but not longer than this; answer whether it came."""
    if event.is_set():
        return True
    with suppress(TimeoutError):
        async with asyncio.timeout(at_most.total_seconds()):
            await event.wait()
    return event.is_set()


async def within(work: Coroutine[Any, Any, T], at_most: timedelta) -> T:
    """What it answers; TimeoutError, and it is cancelled, when that takes longer than this."""
    async with asyncio.timeout(at_most.total_seconds()):
        return await work


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Wait for the end of this even if we are cancelled meanwhile; the cancellation comes after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # whoever cancelled us does not want to hear of it
        raise


def nap(length: timedelta) -> None:
    """The same for a thread that has nothing else to do."""
    time.sleep(length.total_seconds())


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, here and now."""
    try:
        work.send(None)
    except StopIteration as done:
        answer: T = done.value
        return answer
    work.close()
    raise RuntimeError("a coroutine that must not wait has waited")


async def answer(call: Coroutine[Any, Any, T], *, within: timedelta, to: str) -> T:
    """The call's answer, or StoreUnavailable when the time is up. A cancelled call may go on for long,
    because its session with a frozen server is given time to be cancelled too: that is not waited for."""
    asking = asyncio.ensure_future(call)
    try:
        await asyncio.wait({asking}, timeout=within.total_seconds())
    except asyncio.CancelledError:
        drop(asking)
        raise
    if not asking.done():
        drop(asking)
        raise StoreUnavailable(f"no answer to {to}")
    return asking.result()


def drop(asking: asyncio.Future[Any]) -> None:
    """Have no more to do with this call; what it still raises is nobody's."""
    asking.cancel()
    asking.add_done_callback(lambda late: late.cancelled() or late.exception())
