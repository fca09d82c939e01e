"""What every process clears away: the leases and claims of dead processes, jobs past their deadline, old
history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.model.dead_letter import DeadFilter
from mainspring.model.job import JobName
from mainspring.model.process import UNWATCHED
from mainspring.signals import Signals
from mainspring.store.store import Store
from mainspring.telemetry.events import (
    DeadLettersCounted,
    HistoryPruned,
    JobsExpired,
    JobsQuarantined,
    ProcessesReaped,
    ResultsDropped,
    Telemetry,
)

BATCH = 1000
REAP_EVERY = timedelta(milliseconds=500)
PASSES_BETWEEN_ORPHANS = 600


class Reaper:
    """Every process runs one; the first that looks does the work. It judges only what it has watched: after
    an outage, or its own start, every process has the time of its lease to renew before it is taken for
    dead."""

    name = "reaper"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        entropy: Entropy,
        telemetry: Telemetry,
        signals: Signals | None = None,
    ) -> None:
        self._store = store
        self.signals = signals or Signals()
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._passes = 0
        self._watch = UNWATCHED
        self._late: bool | None = None

    @property
    def expects(self) -> bool:
        """Whether jobs may soon be given back: some process's lease has ended, or we have not looked."""
        return self._late is not False

    async def tick(self) -> timedelta:
        if self._passes % PASSES_BETWEEN_ORPHANS == 0:
            await self._store.processes.mark_orphans_dead(at=self._clock.stamp())
        self._passes += 1
        watch, self._watch = self._watch, UNWATCHED  # what does not answer ends it
        reaped = await self._store.processes.reap(limit=BATCH, watch=watch, at=self._clock.stamp())
        if reaped.at is not None:
            self._watch = watch.seen(reaped.at)
        expected, self._late = self.expects, reaped.late
        if expected and not reaped.late:
            self.signals.none_expected.send()
        if reaped.processes or reaped.jobs:
            self._telemetry.emit(ProcessesReaped(processes=reaped.processes, jobs=reaped.jobs))
        if reaped.buried:
            names = await dead_names(self._store, reaped.buried)
            self._telemetry.emit(JobsQuarantined(job_ids=reaped.buried, jobs=names))
        if reaped.jobs == BATCH:
            return timedelta()
        return REAP_EVERY * (0.75 + 0.5 * self._entropy.fraction())


async def dead_names(store: Store, job_ids: Sequence[int]) -> tuple[JobName, ...]:
    """What these dead letters are, for the log: it goes without if the store does not say."""
    try:
        return tuple(await store.dead_letters.names(job_ids))
    except StoreError:
        return ()


SWEEP_EVERY = timedelta(seconds=10)
"""How late a job may die of its deadline; one that a worker claims before that does not run either."""
PASSES_BETWEEN_COUNTS = 6
COUNTED = 10_000
WITHIN = timedelta(minutes=1)


class Sweeper:
    """Every process runs one; the first that looks does the work."""

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
        return SWEEP_EVERY * (0.75 + 0.5 * self._entropy.fraction())

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


PRUNE_EVERY = timedelta(hours=1)


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
        return PRUNE_EVERY * (0.5 + self._entropy.fraction())
