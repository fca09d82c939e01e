"""Finds processes whose lease has ended and gives their jobs back."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.store.ports import FleetStore
from mainspring.telemetry import JobsQuarantined, MembersReaped, Telemetry

BATCH = 1000
EVERY = timedelta(milliseconds=500)
PASSES_BETWEEN_MOURNING = 600


class Reaper:
    """Every process runs one; whoever looks first does the work."""

    name = "reaper"

    def __init__(self, fleet: FleetStore, clock: Clock, entropy: Entropy, telemetry: Telemetry) -> None:
        self._fleet = fleet
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._passes = 0

    async def tick(self) -> timedelta:
        if self._passes % PASSES_BETWEEN_MOURNING == 0:
            await self._fleet.mourn(at=self._clock.stamp())
        self._passes += 1
        reaped = await self._fleet.reap(limit=BATCH, at=self._clock.stamp())
        if reaped.members or reaped.jobs:
            self._telemetry.emit(MembersReaped(members=reaped.members, jobs=reaped.jobs))
        if reaped.buried:
            self._telemetry.emit(JobsQuarantined(job_ids=reaped.buried))
        if reaped.jobs == BATCH:
            return timedelta()
        return EVERY * (0.75 + 0.5 * self._entropy.fraction())
