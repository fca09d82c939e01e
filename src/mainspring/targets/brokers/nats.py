"""NATS JetStream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mainspring.errors import TargetRefused, TargetUnavailable
from mainspring.targets.broker import BrokerMessage, valid_text, valid_url
from mainspring.targets.task import Result, needs

if TYPE_CHECKING:
    from nats.aio.client import Client


@dataclass(frozen=True, slots=True, repr=False)
class Nats:
    """A message to a subject that a stream listens to. Its `Nats-Msg-Id` is the job's token, so that the
    server drops a second copy within the stream's `duplicate_window`."""

    url: str
    subject: str
    credentials: str | None = None
    """A .creds file."""

    def __post_init__(self) -> None:
        valid_url(self.url, "nats.url", ("nats://", "tls://", "ws://", "wss://"))
        valid_text(self.subject, "nats.subject", "a subject")
        if self.credentials is not None:
            valid_text(self.credentials, "nats.credentials", "the name of a file")

    def __str__(self) -> str:
        return f"nats subject {self.subject}"

    __repr__ = __str__

    async def connect(self) -> _Subject:
        with needs("nats", "nats"):
            import nats
            from nats.errors import Error
        try:
            # When it is lost we open another: the client's own way would hold messages back unsaid.
            client = await nats.connect(
                self.url, allow_reconnect=False, user_credentials=self.credentials, error_cb=_said_elsewhere
            )
        except (Error, OSError, ValueError) as problem:
            raise TargetUnavailable(f"{self}: {problem}") from problem
        return _Subject(self, client)


class _Subject:
    def __init__(self, broker: Nats, client: Client) -> None:
        self._broker, self._client = broker, client

    @property
    def is_alive(self) -> bool:
        return self._client.is_connected

    async def publish(self, message: BrokerMessage) -> Result:
        from nats.errors import Error, MaxPayloadError

        headers = {"Nats-Msg-Id": message.token, "Mainspring-Task": message.task}
        for name, word in message.slot.items():
            headers[f"Mainspring-{name.replace('_', '-').title()}"] = word
        try:
            stored = await self._client.jetstream().publish(
                self._broker.subject, message.body, headers=headers
            )
        except MaxPayloadError as problem:
            raise TargetRefused(f"{self._broker}: {problem}") from problem
        except (Error, OSError) as problem:
            # No stream that listens is one of these: it may be made yet.
            raise TargetUnavailable(f"{self._broker}: {problem}") from problem
        return {"stream": stored.stream, "sequence": stored.seq, "duplicate": bool(stored.duplicate)}

    async def close(self) -> None:
        await self._client.close()


async def _said_elsewhere(_: Exception) -> None:
    """A publish that fails says so itself; a connection that is lost is seen before the next one."""
