"""RabbitMQ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.errors import TargetUnavailable
from mainspring.targets.broker import BrokerMessage, valid_text, valid_url
from mainspring.targets.task import Result, needs

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange


@dataclass(frozen=True, slots=True, repr=False)
class RabbitMQ:
    """A persistent message to an exchange, with the job's token as its `message_id`. It has succeeded when
    the server has confirmed it; one that no queue takes comes back, and is tried again."""

    url: str
    routing_key: str
    exchange: str = ""
    """The default exchange: the routing key is then the name of a queue."""

    def __post_init__(self) -> None:
        valid_url(self.url, "rabbitmq.url", ("amqp://", "amqps://"))
        valid_text(self.routing_key, "rabbitmq.routing_key", "a routing key")
        if self.exchange != "":
            valid_text(self.exchange, "rabbitmq.exchange", "the name of an exchange")

    def __str__(self) -> str:
        return f"rabbitmq {self.exchange or 'queue'} {self.routing_key}"

    __repr__ = __str__

    async def connect(self) -> _Exchange:
        with needs("rabbitmq", "aio_pika"):
            import aio_pika
            from aio_pika.exceptions import AMQPError
        try:
            connection = await aio_pika.connect(self.url)
        except (AMQPError, OSError) as problem:
            raise TargetUnavailable(f"{self}: {problem}") from problem
        try:
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            exchange = (
                await channel.get_exchange(self.exchange) if self.exchange else channel.default_exchange
            )
        except (AMQPError, OSError) as problem:
            await connection.close()
            raise TargetUnavailable(f"{self}: {problem}") from problem
        except BaseException:
            await connection.close()
            raise
        return _Exchange(self, connection, channel, exchange)


class _Exchange:
    def __init__(
        self,
        broker: RabbitMQ,
        connection: AbstractConnection,
        channel: AbstractChannel,
        exchange: AbstractExchange,
    ) -> None:
        self._broker, self._connection, self._channel, self._exchange = broker, connection, channel, exchange

    @property
    def is_alive(self) -> bool:
        return not self._connection.is_closed and not self._channel.is_closed

    async def publish(self, message: BrokerMessage) -> Result:
        import aio_pika
        from aio_pika.exceptions import AMQPError, DeliveryError

        outgoing = aio_pika.Message(
            message.body,
            message_id=message.token,
            type=message.task,
            headers=dict(message.slot),
            content_type="application/json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
        )
        try:
            await self._exchange.publish(outgoing, self._broker.routing_key, mandatory=True)
        except DeliveryError as problem:
            raise TargetUnavailable(
                f"{self._broker}: the server refused it, or no queue takes it"
            ) from problem
        except (AMQPError, OSError) as problem:
            raise TargetUnavailable(f"{self._broker}: {problem}") from problem
        return {"exchange": self._broker.exchange, "routing_key": self._broker.routing_key}

    async def close(self) -> None:
        await self._connection.close()
