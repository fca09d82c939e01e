"""Finds processes whose lease has ended and gives their jobs back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.errors import StoreError
from mainspring.model.job import JobName
from mainspring.model.process import UNWATCHED
from mainspring.store.store import Store
from mainspring.telemetry import JobsQuarantined, MembersReaped, Telemetry

BATCH = 1000
EVERY = timedelta(milliseconds=500)
PASSES_BETWEEN_ORPHANS = 600


class Reaper:
    """Every process runs one; whoever looks first does the work. It judges only what it has watched: after an
    outage, or its own start, every member has the time of its lease to renew before it is taken for dead."""

    name = "reaper"

    def __init__(self, store: Store, clock: Clock, entropy: Entropy, telemetry: Telemetry) -> None:
        self._store = store
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._passes = 0
        self._watch = UNWATCHED
        self._late: bool | None = None
        self.on_settled: Callable[[], None] = lambda: None
        """Called when nobody is left whose lease has ended and who may still renew it."""

    @property
    def expects(self) -> bool:
        """Whether jobs may soon be given back: some member's lease has ended, or we have not looked."""
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
            self.on_settled()
        if reaped.members or reaped.jobs:
            self._telemetry.emit(MembersReaped(members=reaped.members, jobs=reaped.jobs))
        if reaped.buried:
            names = await dead_names(self._store, reaped.buried)
            self._telemetry.emit(JobsQuarantined(job_ids=reaped.buried, jobs=names))
        if reaped.jobs == BATCH:
            return timedelta()
        return EVERY * (0.75 + 0.5 * self._entropy.fraction())


async def dead_names(store: Store, job_ids: Sequence[int]) -> tuple[JobName, ...]:
    """What these dead letters are, for the log: it goes without if the store does not say."""
    try:
        return tuple(await store.dead_letters.names(job_ids))
    except StoreError:
        return ()
