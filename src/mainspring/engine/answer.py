"""Answers that come in time, or count as trouble with the store."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, TypeVar

from mainspring.errors import StoreUnavailable

T = TypeVar("T")


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
