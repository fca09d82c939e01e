"""Redis and Valkey streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mainspring.errors import InvalidArgument, TargetUnavailable
from mainspring.targets.broker import BrokerMessage, valid_text, valid_url
from mainspring.targets.task import Result, needs

if TYPE_CHECKING:
    from redis.asyncio import Redis

_MOST = 2**31


@dataclass(frozen=True, slots=True, repr=False)
class RedisStream:
    """`XADD stream`, with the fields `id` (the job's token), `task` and `body` (JSON)."""

    url: str
    stream: str
    maxlen: int | None = None
    """About how many entries the stream keeps; None for all."""

    def __post_init__(self) -> None:
        valid_url(self.url, "redis.url", ("redis://", "rediss://", "unix://"))
        valid_text(self.stream, "redis.stream", "the name of a stream")
        if self.maxlen is not None and (type(self.maxlen) is not int or not 0 < self.maxlen < _MOST):
            raise InvalidArgument("redis.maxlen", self.maxlen, f"a whole number from 1 to {_MOST - 1}")

    def __str__(self) -> str:
        return f"redis stream {self.stream}"

    __repr__ = __str__

    async def connect(self) -> _Stream:
        with needs("redis", "redis"):
            from redis.asyncio import Redis
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        # It connects by itself, and again. It must not send again by itself: an XADD is a second entry.
        return _Stream(self, Redis.from_url(self.url, retry=Retry(NoBackoff(), 0)))


class _Stream:
    is_alive = True

    def __init__(self, broker: RedisStream, client: Redis) -> None:
        self._broker, self._client = broker, client

    async def publish(self, message: BrokerMessage) -> Result:
        from redis.exceptions import RedisError

        try:
            fields: dict[Any, Any] = {"id": message.token, "task": message.task, "body": message.body}
            # With the entry's id the server confirms that it is in the stream.
            entry: bytes | str = await self._client.xadd(
                self._broker.stream,
                fields | dict(message.slot),
                maxlen=self._broker.maxlen,
                approximate=True,
            )
        except (RedisError, OSError) as problem:
            raise TargetUnavailable(f"{self._broker}: {problem}") from problem
        return {"stream": self._broker.stream, "entry": entry.decode() if isinstance(entry, bytes) else entry}

    async def close(self) -> None:
        await self._client.aclose()
