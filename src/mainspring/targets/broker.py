"""What a broker is to a job that publishes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol

import msgspec

from mainspring.model.value import Value
from mainspring.targets.task import Result

_encode = msgspec.json.Encoder(order="deterministic").encode


class Message(Value, frozen=True, kw_only=True):
    """What is published. A job that is tried again has the same token: consumers can tell."""

    token: str
    task: str
    values: Mapping[str, object]
    slot: Mapping[str, str] = {}
    """What the job of a slot stands for: `slot`, `previous_slot`, `period_start`, `missed_since`, `missed`;
    empty for a job put in by hand."""

    @property
    def body(self) -> bytes:
        return _encode(self.values)


class Connection(Protocol):
    """A connection to a broker, used by many jobs at once."""

    @property
    def is_alive(self) -> bool:
        """Whether it is worth another message."""

    async def publish(self, message: Message) -> Result:
        """Return when the broker has confirmed; else raise a TargetError."""

    async def close(self) -> None: ...


class Broker(Hashable, Protocol):
    """Where to publish: a value, which opens nothing by itself."""

    async def connect(self) -> Connection:
        """Raise TargetUnavailable when it cannot be reached."""
