"""Messages to brokers as jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from mainspring.declare.context import Context
from mainspring.duration import Duration, duration
from mainspring.errors import InvalidArgument, TargetUnavailable
from mainspring.targets.broker import Broker, Message
from mainspring.targets.clients import Clients
from mainspring.targets.task import Result, slot_words

_SHORTEST = timedelta(milliseconds=1)


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
        message = Message(token=context.token, task=context.task, values=values, slot=slot_words(context))
        try:
            async with asyncio.timeout(self._timeout.total_seconds()):
                connection = await self._clients.get(self._broker)
                return await connection.publish(message)
        except TimeoutError:
            await self._clients.drop(self._broker)
            waited = f"{self._timeout.total_seconds():g} s"
            raise TargetUnavailable(f"{self._broker}: no confirmation within {waited}") from None
