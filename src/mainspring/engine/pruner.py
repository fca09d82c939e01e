"""Drops history that is older than it has to be kept, and what ended runs left behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.store.ports import JobQueue, ReportStore, StatStore
from mainspring.telemetry import HistoryPruned, ResultsDropped, Telemetry

EVERY = timedelta(hours=1)


class PrunedStore(JobQueue, ReportStore, StatStore, Protocol):
    """What a pruner asks of a store."""


class Pruner:
    """Every process runs one; a second prune finds nothing to do."""

    name = "pruner"

    def __init__(
        self,
        queue: PrunedStore,
        keep: timedelta,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        *,
        results: timedelta = timedelta(),
    ) -> None:
        """`results` that are kept shorter than their runs; zero for as long as those."""
        self._queue = queue
        self._keep = keep
        self._results = results
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry

    async def tick(self) -> timedelta:
        gone = await self._queue.prune(keep=self._keep, at=self._clock.stamp())
        if gone:
            self._telemetry.emit(HistoryPruned(gone=gone))
        if timedelta() < self._results < self._keep:
            dropped = await self._queue.drop_results(keep=self._results, at=self._clock.stamp())
            if dropped:
                self._telemetry.emit(ResultsDropped(gone=dropped))
        await self._queue.prune_stats(keep=self._keep, at=self._clock.stamp())
        await self._queue.sweep_progress(at=self._clock.stamp())
        return EVERY * (0.5 + self._entropy.fraction())
