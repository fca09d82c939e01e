"""What jobs wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mainspring.model.event import Event
from mainspring.store.ports.stamp import Stamp


class EventStore(Protocol):
    """Events, and who waits for them. A job begins to wait when it is settled as SNOOZED with `awaits`."""

    async def send_event(self, event: Event, *, at: Stamp) -> bool:
        """Keep it, and make the jobs due that wait for it; False, and nothing changes, when there is one of
        that name for the same job already, or for everybody. Durable on return. Whoever begins to wait
        meanwhile is woken, or finds it."""

    async def event(self, job_id: int, name: str) -> bytes | None:
        """What was sent to this job, or else to everybody; None when nothing was."""

    async def awaited(self, job_ids: Sequence[int]) -> dict[int, str]:
        """Which event each of these jobs waits for; those that wait for none are left out."""
