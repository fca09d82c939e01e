"""Messages to real brokers, and to what stands in for Kafka."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mainspring.errors import InvalidArgument, TargetUnavailable
from mainspring.targets import Kafka, Nats, RabbitMQ, RedisStream
from mainspring.targets.broker import Broker, Clients, PublishTarget
from mainspring.tasks.context import Context
from tests.support import brokers

Publish = Callable[..., list[Any]]
NOWHERE = 1  # a port that nobody listens on


@pytest.fixture(scope="module")
def valkey() -> Iterator[brokers.Valkey]:
    server = brokers.Valkey()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def nats_server() -> Iterator[brokers.Nats]:
    server = brokers.Nats()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def rabbit() -> Iterator[brokers.Rabbit]:
    if not brokers.Rabbit.is_installed():
        pytest.skip("RabbitMQ is not installed: tests/support/install-rabbitmq does that")
    server = brokers.Rabbit()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def kafka() -> Iterator[brokers.KafkaStandIn]:
    stand_in = brokers.KafkaStandIn()
    yield stand_in
    stand_in.stop()


@pytest.fixture
def publish(run: Callable[[Any], Any], context: Callable[..., Context]) -> Publish:
    """Publish from these jobs, over one connection; answer their results."""

    def published(
        broker: Broker, *jobs: int, values: dict[str, Any] | None = None, timeout: str = "30s"
    ) -> list[Any]:
        clients = Clients()
        target = PublishTarget("orders", broker, timeout=timeout, clients=clients)

        async def go() -> list[Any]:
            try:
                return [await target.run(context(job, "orders"), values or {"n": job}) for job in jobs]
            finally:
                await clients.aclose()

        found: list[Any] = run(go())
        return found

    return published


def test_a_redis_stream_has_the_message_with_the_token(
    publish: Publish, run: Callable[[Any], Any], context: Callable[..., Context], valkey: brokers.Valkey
) -> None:
    from redis.asyncio import Redis

    results = publish(RedisStream(valkey.url, "orders"), 1, 1, 2)

    async def entries() -> Any:
        async with Redis.from_url(valkey.url, decode_responses=True) as client:
            return await client.xrange("orders")

    found = run(entries())
    assert [entry for entry, _ in found] == [each["entry"] for each in results]
    assert [fields["id"] for _, fields in found] == [context(job).token for job in (1, 1, 2)]
    assert [json.loads(fields["body"]) for _, fields in found] == [{"n": 1}, {"n": 1}, {"n": 2}]
    assert {fields["task"] for _, fields in found} == {"orders"}


def test_a_stream_can_be_kept_short(
    publish: Publish, run: Callable[[Any], Any], valkey: brokers.Valkey
) -> None:
    from redis.asyncio import Redis

    publish(RedisStream(valkey.url, "short", maxlen=10), *range(1, 400))

    async def length() -> int:
        async with Redis.from_url(valkey.url) as client:
            return int(await client.xlen("short"))

    assert run(length()) < 250  # about: whole nodes of the stream are dropped


def test_a_key_that_is_no_stream_is_told(
    publish: Publish, run: Callable[[Any], Any], valkey: brokers.Valkey
) -> None:
    from redis.asyncio import Redis

    async def spoil() -> None:
        async with Redis.from_url(valkey.url) as client:
            await client.set("text", "x")

    run(spoil())
    with pytest.raises(TargetUnavailable, match="redis stream text: WRONGTYPE"):
        publish(RedisStream(valkey.url, "text"), 1)


async def jetstream(url: str, subject: str) -> Any:
    import nats

    client = await nats.connect(url)
    try:
        await client.jetstream().add_stream(name=subject.upper(), subjects=[subject])
    finally:
        await client.close()


def test_nats_drops_the_second_copy_of_a_job(
    publish: Publish, run: Callable[[Any], Any], context: Callable[..., Context], nats_server: brokers.Nats
) -> None:
    import nats

    run(jetstream(nats_server.url, "orders"))

    results = publish(Nats(nats_server.url, "orders"), 1, 1, 2)

    async def stored() -> list[Any]:
        client = await nats.connect(nats_server.url)
        try:
            stream = client.jetstream()
            return [await stream.get_msg("ORDERS", seq=number) for number in (1, 2)]
        finally:
            await client.close()

    messages = run(stored())
    assert [(each["sequence"], each["duplicate"]) for each in results] == [(1, False), (1, True), (2, False)]
    assert [each.headers["Nats-Msg-Id"] for each in messages] == [context(job).token for job in (1, 2)]
    assert [json.loads(each.data) for each in messages] == [{"n": 1}, {"n": 2}]


def test_a_subject_that_no_stream_listens_to_is_tried_again(
    publish: Publish, nats_server: brokers.Nats
) -> None:
    with pytest.raises(TargetUnavailable, match="nats subject nobody") as raised:
        publish(Nats(nats_server.url, "nobody"), 1)

    assert not raised.value.permanent


def test_a_queue_has_the_confirmed_message_with_its_id(
    publish: Publish, run: Callable[[Any], Any], context: Callable[..., Context], rabbit: brokers.Rabbit
) -> None:
    import aio_pika

    async def declare() -> None:
        async with await aio_pika.connect(rabbit.url) as connection:
            channel = await connection.channel()
            await channel.declare_queue("orders", durable=True)
            exchange = await channel.declare_exchange("shop", durable=True)
            await (await channel.declare_queue("shop-orders", durable=True)).bind(exchange, "paid")

    async def first(queue: str) -> Any:
        async with await aio_pika.connect(rabbit.url) as connection:
            channel = await connection.channel()
            return await (await channel.get_queue(queue)).get(no_ack=True)

    run(declare())
    publish(RabbitMQ(rabbit.url, "orders"), 1)
    publish(RabbitMQ(rabbit.url, "paid", exchange="shop"), 2)

    for queue, job in (("orders", 1), ("shop-orders", 2)):
        message = run(first(queue))
        assert message.message_id == context(job).token
        assert (message.type, message.content_type) == ("orders", "application/json")
        assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
        assert json.loads(message.body) == {"n": job}


def test_a_message_that_no_queue_takes_is_tried_again(publish: Publish, rabbit: brokers.Rabbit) -> None:
    with pytest.raises(TargetUnavailable, match="no queue takes it"):
        publish(RabbitMQ(rabbit.url, "nobody"), 1)


def test_an_exchange_that_is_not_there_is_told(publish: Publish, rabbit: brokers.Rabbit) -> None:
    with pytest.raises(TargetUnavailable, match="no exchange 'missing'"):
        publish(RabbitMQ(rabbit.url, "x", exchange="missing"), 1)


def test_a_topic_has_the_record_with_the_token(
    publish: Publish, context: Callable[..., Context], kafka: brokers.KafkaStandIn
) -> None:
    [first] = publish(Kafka(kafka.servers, "orders"), 1)
    publish(Kafka(kafka.servers, "orders", key="customer"), 2, values={"customer": "acme"})

    records = sorted(kafka.records("orders", 2), key=lambda each: json.loads(each.value()).get("n", 2))
    assert [dict(each.headers())["message-id"] for each in records] == [
        context(job).token.encode() for job in (1, 2)
    ]
    assert [each.key() for each in records] == [context(1).token.encode(), b"acme"]
    assert [json.loads(each.value()) for each in records] == [{"n": 1}, {"customer": "acme"}]
    assert (first["topic"], first["offset"]) == ("orders", 0)


@pytest.mark.parametrize(
    "broker",
    [
        RedisStream(f"redis://127.0.0.1:{NOWHERE}/0", "orders"),
        Nats(f"nats://127.0.0.1:{NOWHERE}", "orders"),
        RabbitMQ(f"amqp://127.0.0.1:{NOWHERE}/", "orders"),
        Kafka(f"127.0.0.1:{NOWHERE}", "orders"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_broker_that_is_away_is_tried_again(publish: Publish, broker: Broker) -> None:
    with pytest.raises(TargetUnavailable) as raised:
        publish(broker, 1)

    assert str(raised.value).startswith(f"{broker}: ")
    assert not raised.value.permanent


def test_a_broker_that_never_answers_is_given_up(publish: Publish) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts, and nobody reads
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        with pytest.raises(TargetUnavailable, match=r"redis stream orders: no confirmation within 0\.3 s"):
            publish(RedisStream(url, "orders"), 1, timeout="300ms")


def test_after_an_outage_a_new_connection_is_opened(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    clients = Clients()
    first = brokers.Nats()
    broker = Nats(first.url, "orders")
    target = PublishTarget("orders", broker, timeout="5s", clients=clients)

    async def before() -> None:
        await jetstream(first.url, "orders")
        await target.run(context(1), {})

    async def during() -> None:
        with pytest.raises(TargetUnavailable):
            await target.run(context(2), {})

    async def after() -> Any:
        try:
            await jetstream(first.url, "orders")
            return await target.run(context(2), {})
        finally:
            await clients.aclose()

    port = first.port
    try:
        run(before())
    finally:
        first.stop()
    run(during())
    second = brokers.Nats(port)
    try:
        assert run(after())["stream"] == "ORDERS"
    finally:
        second.stop()


class Counted:
    """A broker that counts."""

    def __init__(self) -> None:
        self.opened = self.closed = 0
        self.is_alive = True

    async def connect(self) -> Counted:
        self.opened += 1
        await asyncio.sleep(0.01)
        return self

    async def publish(self, message: Any) -> dict[str, object]:
        return {"token": message.token}

    async def close(self) -> None:
        self.closed += 1


def test_jobs_of_one_worker_share_a_connection_until_it_ends(
    run: Callable[[Any], Any], context: Callable[..., Context]
) -> None:
    broker, clients = Counted(), Clients()
    target = PublishTarget("orders", broker, timeout="5s", clients=clients)

    async def go() -> None:
        await asyncio.gather(*(target.run(context(job), {}) for job in range(1, 20)))
        broker.is_alive = False
        await target.run(context(20), {})
        assert (broker.opened, broker.closed) == (2, 1)
        await clients.aclose()
        assert (broker.opened, broker.closed) == (2, 2)

    run(go())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: RedisStream("http://127.0.0.1", "orders"),
        lambda: RedisStream("redis://:hunter2@localhost/\n", "orders"),
        lambda: RedisStream("redis://localhost", ""),
        lambda: RedisStream("redis://localhost", "orders", maxlen=0),
        lambda: Nats("127.0.0.1:4222", "orders"),
        lambda: Nats("nats://localhost", "or ders"),
        lambda: RabbitMQ("amqp://localhost", "a" * 256),
        lambda: RabbitMQ("rabbit://:hunter2@localhost", "orders"),
        lambda: Kafka("", "orders"),
        lambda: Kafka("localhost:9092", "orders", username="ada"),
        lambda: Kafka("localhost:9092", "orders", mechanism="hunter"),
        lambda: PublishTarget("orders", "redis://localhost", timeout="1s", clients=Clients()),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_declared(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        wrong()

    assert "hunter2" not in str(refusal.value)


def test_a_password_is_in_no_name() -> None:
    for broker in (
        RedisStream("redis://:hunter2@localhost", "orders"),
        Nats("nats://ada:hunter2@localhost", "orders"),
        RabbitMQ("amqp://ada:hunter2@localhost/", "orders"),
        Kafka("localhost:9092", "orders", username="ada", password="hunter2"),
    ):
        assert "hunter2" not in f"{broker!r} {broker!s}"
