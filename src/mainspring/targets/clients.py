"""Connections to brokers: one for each broker and event loop, opened when first needed."""

from __future__ import annotations

import asyncio
import logging
import weakref
from datetime import timedelta

from mainspring.errors import TargetUnavailable
from mainspring.targets.broker import Broker, Connection

CONNECT_WITHIN = timedelta(seconds=10)
CLOSE_WITHIN = timedelta(seconds=5)
_Opening = asyncio.Task[Connection]
_log = logging.getLogger("mainspring.targets")


class Clients:
    """Shared by every job that publishes, and closed with the app's store at the worker's end."""

    def __init__(self) -> None:
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Broker, _Opening]]
        self._loops = weakref.WeakKeyDictionary()

    async def get(self, broker: Broker) -> Connection:
        """The connection to this broker. Those who ask meanwhile wait for the same one."""
        loop = asyncio.get_running_loop()
        held = self._loops.setdefault(loop, {})
        opening = held.get(broker)
        if opening is not None and opening.done() and not _is_usable(opening):
            del held[broker]
            await _closed(opening)
            opening = held.get(broker)
        if opening is None:
            opening = held[broker] = loop.create_task(_open(broker))
            opening.add_done_callback(_seen)
        return await asyncio.shield(opening)

    async def drop(self, broker: Broker) -> None:
        """Let go of a connection that no longer answers."""
        opening = self._loops.get(asyncio.get_running_loop(), {}).pop(broker, None)
        if opening is not None:
            await _closed(opening)

    async def aclose(self) -> None:
        """Close this event loop's connections."""
        held = self._loops.pop(asyncio.get_running_loop(), {})
        await asyncio.gather(*(_closed(opening) for opening in held.values()))


async def _open(broker: Broker) -> Connection:
    try:
        async with asyncio.timeout(CONNECT_WITHIN.total_seconds()):
            return await broker.connect()
    except TimeoutError:
        waited = f"{CONNECT_WITHIN.total_seconds():g} s"
        raise TargetUnavailable(f"{broker}: no connection within {waited}") from None


def _is_usable(opening: _Opening) -> bool:
    return not opening.cancelled() and opening.exception() is None and opening.result().is_alive


def _seen(opening: _Opening) -> None:
    # Whoever asked has been told; if all have gone meanwhile, asyncio would complain that nobody was.
    if not opening.cancelled():
        opening.exception()


async def _closed(opening: _Opening) -> None:
    opening.cancel()
    await asyncio.wait([opening])
    if opening.cancelled() or opening.exception() is not None:
        return
    try:
        async with asyncio.timeout(CLOSE_WITHIN.total_seconds()):
            await opening.result().close()
    except Exception as problem:  # noqa: BLE001 - a broken connection may fail in any way, and there is nothing left to save
        _log.debug("a connection did not close cleanly: %s", problem)
