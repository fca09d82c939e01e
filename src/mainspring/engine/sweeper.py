"""Ends the jobs that nobody claimed by their deadline, and counts the dead."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.engine.reaper import dead_names
from mainspring.entropy import Entropy
from mainspring.model.dead_letter import DeadFilter
from mainspring.store.store import Store
from mainspring.telemetry import DeadLettersCounted, JobsExpired, Telemetry

BATCH = 1000
EVERY = timedelta(seconds=10)
"""How late a job may die of its deadline; one that a worker claims before that does not run either."""
PASSES_BETWEEN_COUNTS = 6
COUNTED = 10_000
WITHIN = timedelta(minutes=1)


class Sweeper:
    """Every process runs one; whoever looks first does the work."""

    name = "sweeper"

    def __init__(self, store: Store, clock: Clock, entropy: Entropy, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._passes = 0

    async def tick(self) -> timedelta:
        expired = await self._store.jobs.expire(limit=BATCH, at=self._clock.stamp())
        if expired:
            names = await dead_names(self._store, expired)
            self._telemetry.emit(JobsExpired(job_ids=tuple(expired), jobs=names))
        if len(expired) == BATCH:
            return timedelta()
        if self._passes % PASSES_BETWEEN_COUNTS == 0:
            await self._count()
        self._passes += 1
        return EVERY * (0.75 + 0.5 * self._entropy.fraction())

    async def _count(self) -> None:
        now = await self._store.now(at=self._clock.stamp())
        lately = DeadFilter(died_from=now - WITHIN, limit=COUNTED)
        self._telemetry.emit(
            DeadLettersCounted(
                count=await self._store.dead_letters.count(DeadFilter(limit=COUNTED)),
                grown=await self._store.dead_letters.count(lately),
                within=WITHIN,
                most=COUNTED,
            )
        )
