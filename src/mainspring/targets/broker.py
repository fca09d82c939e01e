"""Messages to brokers as jobs: what a broker is, its shared connections, and the target that publishes."""

from __future__ import annotations

import asyncio
import logging
import re
import weakref
from collections.abc import Hashable, Mapping
from datetime import timedelta
from typing import Protocol

import msgspec

from mainspring.config import masked_url
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument, TargetUnavailable
from mainspring.model.value import Value
from mainspring.targets.task import Result, slot_words
from mainspring.tasks.context import Context

_encode = msgspec.json.Encoder(order="deterministic").encode
CONNECT_WITHIN = timedelta(seconds=10)
CLOSE_WITHIN = timedelta(seconds=5)
_log = logging.getLogger("mainspring.targets")
_SHORTEST = timedelta(milliseconds=1)
_TEXT = re.compile(r"[!-~]+")
_LONGEST = 255


class BrokerMessage(Value, frozen=True, kw_only=True):
    """What is published. A job that is tried again has the same token: consumers can recognise it."""

    token: str
    task: str
    values: Mapping[str, object]
    slot: Mapping[str, str] = {}
    """What the job of a slot stands for: `slot`, `previous_slot`, `period_start`, `missed_since`, `missed`;
    empty for a job put in by hand."""

    @property
    def body(self) -> bytes:
        return _encode(self.values)


class BrokerConnection(Protocol):
    """A connection to a broker, used by many jobs at once."""

    @property
    def is_alive(self) -> bool:
        """Whether it is worth another message."""

    async def publish(self, message: BrokerMessage) -> Result:
        """Return when the broker has confirmed; else raise a TargetError."""

    async def close(self) -> None: ...


class Broker(Hashable, Protocol):
    """Where to publish: a value, which opens nothing by itself."""

    async def connect(self) -> BrokerConnection:
        """Raise TargetUnavailable when it cannot be reached."""


_Opening = asyncio.Task[BrokerConnection]


class Clients:
    """Shared by every job that publishes, and closed with the app's store at the worker's end."""

    def __init__(self) -> None:
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Broker, _Opening]]
        self._loops = weakref.WeakKeyDictionary()

    async def get(self, broker: Broker) -> BrokerConnection:
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


async def _open(broker: Broker) -> BrokerConnection:
    try:
        async with asyncio.timeout(CONNECT_WITHIN.total_seconds()):
            return await broker.connect()
    except TimeoutError:
        waited = f"{CONNECT_WITHIN.total_seconds():g} s"
        raise TargetUnavailable(f"{broker}: no connection within {waited}") from None


def _is_usable(opening: _Opening) -> bool:
    return not opening.cancelled() and opening.exception() is None and opening.result().is_alive


def _seen(opening: _Opening) -> None:
    # All callers have got the error; if none waits any more, asyncio would log that it was never read.
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


class PublishTarget:
    """A message to one place at one broker."""

    needs_shell = False
    parameters: tuple[str, ...] = ()
    takes_any = True

    def __init__(self, name: str, broker: Broker, *, timeout: Duration, clients: Clients) -> None:
        if not hasattr(broker, "connect"):
            raise InvalidArgument(f"{name}.broker", broker, "a RedisStream, Nats, RabbitMQ or Kafka")
        self._broker = broker
        self._timeout = duration(timeout, f"{name}.timeout", least=_SHORTEST)
        self._clients = clients

    def check(self, values: Mapping[str, object]) -> None:
        """Any JSON object is a message."""

    async def run(self, context: Context, values: Mapping[str, object]) -> Result:
        """Publish, and wait for the confirmation. What was not confirmed is published again under the
        same id, for a message twice is better than none."""
        message = BrokerMessage(
            token=context.token, task=context.task, values=values, slot=slot_words(context)
        )
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                connection = await self._clients.get(self._broker)
                return await connection.publish(message)
        except TimeoutError:
            await self._clients.drop(self._broker)
            waited = f"{self._timeout.total_seconds():g} s"
            raise TargetUnavailable(f"{self._broker}: no confirmation within {waited}") from None


def valid_text(text: object, field: str, what: str) -> str:
    """Visible ASCII, as the names of streams, subjects, topics and exchanges are."""
    if not isinstance(text, str) or not _TEXT.fullmatch(text) or len(text) > _LONGEST:
        raise InvalidArgument(field, text, f"{what}: up to {_LONGEST} visible ASCII characters")
    return text


def valid_url(url: object, field: str, schemes: tuple[str, ...]) -> str:
    """A URL of one of these kinds. Its password is in no message."""
    if not isinstance(url, str) or not _TEXT.fullmatch(url) or not url.startswith(schemes):
        shown = masked_url(url) if isinstance(url, str) else url
        raise InvalidArgument(field, shown, f"a URL that begins with {' or '.join(schemes)}")
    return url
