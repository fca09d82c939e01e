"""Drops history that is older than it has to be kept, and what ended runs left behind."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.store.store import Store
from mainspring.telemetry import HistoryPruned, ResultsDropped, Telemetry

EVERY = timedelta(hours=1)


class Pruner:
    """Every process runs one; a second prune finds nothing to do."""

    name = "pruner"

    def __init__(
        self,
        store: Store,
        keep: timedelta,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        *,
        results: timedelta = timedelta(),
    ) -> None:
        """`results` that are kept shorter than their runs; zero for as long as those."""
        self._store = store
        self._keep = keep
        self._results = results
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry

    async def tick(self) -> timedelta:
        gone = await self._store.prune(keep=self._keep, at=self._clock.stamp())
        if gone:
            self._telemetry.emit(HistoryPruned(gone=gone))
        if timedelta() < self._results < self._keep:
            dropped = await self._store.runs.drop_results(keep=self._results, at=self._clock.stamp())
            if dropped:
                self._telemetry.emit(ResultsDropped(gone=dropped))
        await self._store.stats.prune(keep=self._keep, at=self._clock.stamp())
        await self._store.runs.sweep_progress(at=self._clock.stamp())
        return EVERY * (0.5 + self._entropy.fraction())
