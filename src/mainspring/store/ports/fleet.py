"""Processes and their leases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mainspring.model.fleet import Beat, Member, Reaped, Watch
from mainspring.store.ports.stamp import Stamp


class FleetStore(Protocol):
    """Leases of processes."""

    async def join(self, member: Member, *, lease: timedelta, at: Stamp) -> None:
        """Enter a process start, alive until now + lease."""

    async def beat(
        self,
        member_id: int,
        *,
        lease: timedelta,
        claims: Sequence[tuple[int, int]],
        told: datetime | None = None,
        at: Stamp,
    ) -> Beat:
        """Renew the lease unless the member is on record as dead, and say which of the (job, fence) pairs are
        no longer this member's. A lease that has ended is renewed, too: until the reaper has come, nobody was
        given what it holds. That is kept for who wants to see it, and how far its own clock, which says
        `told`, is from the store's."""

    async def leave(self, member_id: int, *, clean: bool, at: Stamp) -> None:
        """End the lease now. `clean` promises that no claim is left under it."""

    async def is_down(self) -> bool:
        """Whether the store itself is known to take calls from nobody: its host refuses sessions, it says
        that it is starting or stopping, its file is locked. No answer is no knowledge: then it may be only
        us."""

    async def reap(self, *, limit: int, watch: Watch | None = None, at: Stamp) -> Reaped:
        """Give back the claims of members whose lease has ended, at most `limit` jobs a pass. With a `watch`,
        only of those who could have renewed it while that went on: for as long as their lease lasts. A lease
        that ends later than it could if it were renewed now is cut to that.

        A claim given back is no failure of its job. It is a crash of a job whose run is on record as begun,
        and one that has crashed too often is a dead letter with reason `crashed`; any other becomes a
        suspect, if it is not one. Finding the dead, giving back and forgetting may be transactions of their
        own: any reaper goes on where one died."""

    async def mourn(self, *, at: Stamp) -> int:
        """Put on record, as dead, members that hold claims but have no row, so that the next `reap`
        gives their claims back. There should be none: this is the net under a clean leave that was
        not. Answers how many there were."""
