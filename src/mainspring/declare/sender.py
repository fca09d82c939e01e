"""The way from a declared task to a store; the app provides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from mainspring.declare.handle import JobHandle
from mainspring.model.job import NewJob


class Sender(Protocol):
    """Puts jobs into their queues, all or none; durable when it returns. With `tx`, a connection of the
    caller's, they are part of the transaction it is in."""

    def enqueue_many(self, jobs: Sequence[NewJob], *, tx: object | None = None) -> list[JobHandle[Any]]:
        """Block until they are stored; handles in order."""

    async def aenqueue_many(
        self, jobs: Sequence[NewJob], *, tx: object | None = None
    ) -> list[JobHandle[Any]]:
        """The same on an event loop."""
