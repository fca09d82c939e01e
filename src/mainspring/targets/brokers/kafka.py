"""Kafka."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from mainspring.errors import InvalidArgument, TargetRefused, TargetUnavailable
from mainspring.targets.broker import BrokerMessage, valid_text
from mainspring.targets.task import Result, needs

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_MECHANISMS = get_args(Mechanism)


@dataclass(frozen=True, slots=True, repr=False)
class Kafka:
    """A record in a topic, confirmed by all replicas in sync. The header `message-id` is the job's token,
    and so is the key, unless `key` names an argument and the job has it."""

    servers: str
    """`host:port`, and more of them after commas."""
    topic: str
    key: str | None = None
    tls: bool = False
    username: str | None = None
    password: str | None = None
    mechanism: Mechanism = "PLAIN"

    def __post_init__(self) -> None:
        valid_text(self.servers, "kafka.servers", "host:port, and more of them after commas")
        valid_text(self.topic, "kafka.topic", "the name of a topic")
        if self.mechanism not in _MECHANISMS:
            raise InvalidArgument("kafka.mechanism", self.mechanism, f"one of {', '.join(_MECHANISMS)}")
        if (self.username is None) is not (self.password is None):
            raise InvalidArgument("kafka.username", self.username, "both username and password, or neither")

    def __str__(self) -> str:
        return f"kafka topic {self.topic}"

    __repr__ = __str__

    async def connect(self) -> _Topic:
        with needs("kafka", "aiokafka"):
            from aiokafka import AIOKafkaProducer
            from aiokafka.errors import KafkaError
        protocol = ("SASL_" if self.username is not None else "") + ("SSL" if self.tls else "PLAINTEXT")
        producer = AIOKafkaProducer(
            bootstrap_servers=self.servers.split(","),
            acks="all",
            enable_idempotence=True,
            security_protocol=protocol,
            ssl_context=ssl.create_default_context() if self.tls else None,
            sasl_mechanism=self.mechanism,
            sasl_plain_username=self.username,
            sasl_plain_password=self.password,
        )
        try:
            await producer.start()
        except (KafkaError, OSError) as problem:
            await producer.stop()
            raise TargetUnavailable(f"{self}: {problem}") from problem
        except BaseException:
            await producer.stop()
            raise
        return _Topic(self, producer)


class _Topic:
    is_alive = True  # the client finds its brokers again by itself

    def __init__(self, broker: Kafka, producer: AIOKafkaProducer) -> None:
        self._broker, self._producer = broker, producer

    async def publish(self, message: BrokerMessage) -> Result:
        from aiokafka.errors import InvalidTopicError, KafkaError, MessageSizeTooLargeError

        named = self._broker.key
        key = message.token if named is None else str(message.values.get(named, message.token))
        headers = [("message-id", message.token.encode()), ("task", message.task.encode())]
        headers += [(name.replace("_", "-"), word.encode()) for name, word in message.slot.items()]
        try:
            stored = await self._producer.send_and_wait(
                self._broker.topic, message.body, key=key.encode(), headers=headers
            )
        except (MessageSizeTooLargeError, InvalidTopicError) as problem:
            raise TargetRefused(f"{self._broker}: {problem}") from problem
        except (KafkaError, OSError) as problem:
            raise TargetUnavailable(f"{self._broker}: {problem}") from problem
        return {"topic": stored.topic, "partition": stored.partition, "offset": stored.offset}

    async def close(self) -> None:
        await self._producer.stop()
