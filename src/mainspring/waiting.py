"""The only module that waits."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

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
