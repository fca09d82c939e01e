"""What falls due, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from mainspring.model.schedule import (
    Chunk,
    NewSchedule,
    Opening,
    Schedule,
    SlotFacts,
    Spec,
)
from mainspring.store.ports.stamp import Stamp
from mainspring.trigger.misfire import BREAKER

Expected = Mapping[str, Schedule | None]
"""By name, what the caller has read and wants to stand as it was; None for what must not be there."""


class ScheduleStore(Protocol):
    """Specs, fires and the ledger.

    Whatever changes a schedule first decides, in the same transaction, what was due until then and is not in
    the ledger: by the version that stands, as a fire at this moment would. The version that comes begins at
    that instant. Of a very long outage it takes several transactions, and the change is made in the last.
    """

    async def put_schedules(
        self,
        schedules: Sequence[NewSchedule],
        *,
        author: str | None = None,
        note: str | None = None,
        expected: Expected | None = None,
        at: Stamp,
    ) -> list[str]:
        """Write schedules by name, each change as a new version; answer the names that were new or
        changed. One that is the same is neither written nor locked, so that any number of processes may
        declare it. The others are written some hundred at a time, each batch in a transaction, or, where the
        caller says what is `expected`, all in one. Without an author it is code that speaks: what somebody
        edited since stays. Where one is not as `expected`, nothing is written and Outdated says so."""

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """From now on their slots are skipped as paused, and so is what was due; answer the names that were
        running. When this returns, no fire that began before can still make a job of theirs."""

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """End a pause; answer the names that were paused. Slots of the pause are not caught up."""

    async def hand_back_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """Let code have what somebody edited: what it says next counts. Nothing else changes until
        then. Answers the names that were edited."""

    async def skip_slots(self, name: str, *, count: int, author: str, at: Stamp) -> bool:
        """Have the next `count` slots skipped as requested; False when there is no such schedule."""

    async def trigger_schedule(self, name: str, *, at: Stamp) -> int | None:
        """A job of this schedule now, besides its slots and whatever its policies; its id, or None."""

    async def delete_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """Take schedules away; their ledger and versions stay, and what was due is skipped as deleted.
        Answers the names that were there."""

    async def due_specs(
        self, *, limit: int, beside: Sequence[int] = (), at: Stamp
    ) -> tuple[datetime, list[Spec]]:
        """The store's now, and the specs whose `next_at` has come, earliest first, but for those `beside`:
        a few that the caller can do nothing with."""

    async def unplanned_specs(self, *, limit: int) -> list[Spec]:
        """Specs whose `following_at` is not yet known."""

    async def plan_specs(self, specs: Sequence[Spec]) -> None:
        """Fill in `following_at`, where the spec still stands at the same `next_at`."""

    async def open_fires(self, openings: Sequence[Opening], *, at: Stamp) -> int:
        """Move specs on and open a fire for each slot, where the spec still stands at `expected`.
        Answers how many were ours."""

    async def fire(self, *, limit: int, breaker: int = BREAKER, at: Stamp) -> Chunk | None:
        """Take the oldest open fire and write the next `limit` schedules' ledger rows and jobs,
        and the fire's cursor, in one transaction. None when no fire is open to us. A schedule that catches
        up every missed slot, with no bound of its own, and has `breaker` live jobs gets no more of them."""

    async def release_held(self, *, at: Stamp) -> int:
        """Make due the oldest jobs of each schedule that waited for others which have ended, as many as its
        overlap policy allows at once; answer how many."""

    async def slot_facts(self, schedule_id: int, slot_at: datetime) -> SlotFacts:
        """Of a slot of a schedule, one that was deleted too."""

    async def next_due(self, *, beside: Sequence[int] = (), at: Stamp) -> timedelta | None:
        """How long until the earliest spec that is not among those `beside` is due (not negative), by the
        store's clock."""
