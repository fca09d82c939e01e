"""Limits and queues."""

from __future__ import annotations

from typing import Protocol

from mainspring.model.limit import Admission, GateInfo
from mainspring.model.queue import QueuePause
from mainspring.store.ports.stamp import Stamp


class LimitStore(Protocol):
    """Gates that jobs with limits must pass, and queues that are paused."""

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        """Let through, in one transaction, whom there is room for: one pass at a time in all the fleet. A
        job that is through can be claimed. Its place is free again when it ends, by whatever way, or
        goes back before its gates to be tried later. `after` is the answer of the pass before."""

    async def gates(
        self,
        *,
        name: str | None = None,
        key: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
        holders: int,
    ) -> list[GateInfo]:
        """Gates by name and key, those after this one, each with the first `holders` of the jobs that are
        through."""

    async def gates_of(self, job_id: int, *, holders: int) -> list[GateInfo]:
        """The gates of one live job; none for one without limits."""

    async def pause_queue(self, queue: str, *, author: str, note: str | None, at: Stamp) -> bool:
        """Claim nothing more from it; False when it was paused. When this returns, no claim that began
        before can still take a job."""

    async def resume_queue(self, queue: str) -> bool:
        """End the pause of a queue; False when it was not paused."""

    async def queue_pauses(self) -> list[QueuePause]:
        """Queues that are paused, by name."""
