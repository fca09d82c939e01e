"""Drops history that is older than it has to be kept."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.store.ports import JobQueue
from mainspring.telemetry import HistoryPruned, Telemetry

EVERY = timedelta(hours=1)


class Pruner:
    """Every process runs one; a second prune finds nothing to do."""

    name = "pruner"

    def __init__(
        self, queue: JobQueue, keep: timedelta, clock: Clock, entropy: Entropy, telemetry: Telemetry
    ) -> None:
        self._queue = queue
        self._keep = keep
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry

    async def tick(self) -> timedelta:
        gone = await self._queue.prune(keep=self._keep, at=self._clock.stamp())
        if gone:
            self._telemetry.emit(HistoryPruned(gone=gone))
        return EVERY * (0.5 + self._entropy.fraction())
