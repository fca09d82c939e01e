"""Claims as many jobs as there are free execution slots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.model.job import Claim
from mainspring.signals import Signals
from mainspring.store.queue import Queue
from mainspring.worker.active_runs import ActiveRuns
from mainspring.worker.membership import Membership

LARGEST = 1000
"""Claims asked for at once, at most: a claim must stay short."""
GATHER = timedelta(milliseconds=2)
"""How long a free slot may wait for others: a claim for each would cost the database more than the job."""
LOOK_EVERY = timedelta(seconds=1)
"""How often to look for jobs whose process died: there are nearly always none."""
FEW = 16
"""Execution slots that are not worth two claims."""


def _most(size: int) -> int:
    """Claims asked for at once. Half of all execution slots where there are many: while the one half works,
    the jobs of the other half are on their way from the database."""
    return min(LARGEST, size if size < FEW else size // 2)


def _worth(size: int) -> int:
    """How many free slots are worth a claim of their own while there are more jobs than slots."""
    return 1 if size < FEW else size // 4


class Claimer:
    """One claim a pass. It is woken by hints, and by freed slots while the queue has more jobs."""

    name = "claimer"

    def __init__(
        self,
        queue: Queue,
        active_runs: ActiveRuns,
        membership: Membership,
        clock: Clock,
        signals: Signals,
        *,
        queues: Callable[[], Sequence[str]],
        tasks: Callable[[], Sequence[str]],
        poll: timedelta,
    ) -> None:
        self._queue = queue
        self._active_runs = active_runs
        self._membership = membership
        self._clock = clock
        self._signals = signals
        self._queues = queues
        self._tasks = tasks
        self._poll = poll
        self._hungry = False
        self._full = False
        """Whether no execution slot was free at the last pass."""
        self._gathering = False
        self._in_doubt = False
        self._stopped = False
        self._look_at = 0.0
        """When to look for jobs whose process died again, by the steady clock."""
        self._more_orphans = False

    @property
    def wants_more(self) -> bool:
        """Whether a freed slot is worth a look at the queue: the last claim was filled, and the claimer does
        not wait for more slots already."""
        if self._more_orphans:
            return True
        return self._hungry and (
            not self._gathering or self._active_runs.free >= _worth(self._active_runs.size)
        )

    @property
    def in_doubt(self) -> bool:
        """Whether the store may hold claims for us that we have not heard of."""
        return self._in_doubt

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopped = True
        self._active_runs.no_more_orphans()

    async def tick(self) -> timedelta:
        worker_id = self._membership.id
        if worker_id is None or not self._membership.active or self._stopped:
            return self._poll
        if self._in_doubt:
            await self._adopt(worker_id)
        quiet = self._active_runs.quiet
        asked = min(self._active_runs.free, _most(self._active_runs.size))
        if asked <= 0:
            if self._full:
                # No job whose process died can be claimed, and active runs may wait for the child that is
                # kept.
                self._active_runs.no_more_orphans()
            self._hungry = self._full = True
            return self._poll
        self._full = False
        # What is not found then is taken for not being there.
        everywhere = quiet and self._signals.let_in.has_listeners
        orphans = self._orphans(everywhere=everywhere)
        if self._hungry and not self._gathering and asked < _worth(self._active_runs.size) and not orphans:
            self._gathering = True
            return GATHER
        self._gathering = False
        claims = await self._claim(worker_id, asked, orphans, everywhere=everywhere)
        self._hungry = len(claims) == asked
        if any(claim.limited for claim in claims):
            self._signals.limit_freed.send()
        if quiet and not claims:
            if everywhere and await self._signals.let_in.ask():
                return timedelta()
            self._signals.idle.send()
        if self._hungry:
            return timedelta()
        # A wait may be long where hints wake the claimer; no hint comes for jobs whose process died.
        return self._poll if orphans and not self._active_runs.has_orphans else min(self._poll, LOOK_EVERY)

    async def _claim(self, worker_id: int, limit: int, orphans: int, *, everywhere: bool) -> Sequence[Claim]:
        try:
            claims = await self._queue.claim(
                worker_id,
                queues=self._queues(),
                tasks=self._tasks(),
                limit=limit,
                at=self._clock.stamp(),
                everywhere=everywhere,
                orphans=orphans,
                last=orphans > 0 and not self._active_runs.has_orphans,
            )
            self._take(claims, worker_id)
        except BaseException:
            # Whatever it was, a part of the claim may have been granted: a store may take several
            # looks for one claim, and a later one may fail after an earlier one was committed.
            self._in_doubt = True
            raise
        if orphans:
            self._looked(orphans, sum(claim.orphan for claim in claims))
        return claims

    def _orphans(self, *, everywhere: bool) -> int:
        """How many jobs whose process died to ask for. Each begins at once: one that waited here for a child
        could be lost with this worker again and again, while another worker had a child for it."""
        if self._clock.monotonic() < self._look_at and not everywhere:
            return 0
        room = self._active_runs.room_for_orphans()
        self._more_orphans = self._more_orphans and room > 0
        return room

    def _looked(self, asked: int, found: int) -> None:
        """What came of it: as many as were asked for may have left others behind."""
        self._more_orphans = found == asked
        self._look_at = self._clock.monotonic() + (0 if found == asked else LOOK_EVERY.total_seconds())
        if found < asked:
            self._active_runs.no_more_orphans()

    async def _adopt(self, worker_id: int) -> None:
        """An answer was lost: what was claimed for us must not wait for our lease to end.

        The store still shows runs that have ended and are not yet written. They are no orphans:
        started again, they would run twice. So we know what is ours before we ask, and go on
        doubting until those are written too.
        """
        in_hand, unwritten = self._active_runs.taken(), self._active_runs.unwritten()
        held = await self._queue.held(worker_id, at=self._clock.stamp())
        keys = {(claim.job_id, claim.fence) for claim in held}
        known = in_hand | unwritten
        self._take([claim for claim in held if (claim.job_id, claim.fence) not in known], worker_id)
        self._in_doubt = bool(keys & unwritten - in_hand)

    def _take(self, claims: Sequence[Claim], worker_id: int) -> None:
        if self._stopped or self._membership.id != worker_id or self._membership.suspended:
            # The worker was stopped, or its lease was lost or began to run out, while the answer was on its
            # way: the runs that were stopped then did not include these.
            self._active_runs.give_back(claims)
        else:
            self._active_runs.start(claims)


class QueueOrder:
    """As they were named; or, with weights, anew for each claim, by chance in their proportion."""

    def __init__(self, names: Sequence[str], weights: Sequence[int] | None, entropy: Entropy) -> None:
        self._names, self._weights, self._entropy = tuple(names), weights, entropy

    def order(self) -> tuple[str, ...]:
        """Every queue once, the one to be served first in front."""
        if self._weights is None:
            return self._names
        # Drawn with its weight: u ** (1 / weight), the largest first (Efraimidis and Spirakis).
        drawn = [
            (self._entropy.fraction() ** (1 / weight), name)
            for name, weight in zip(self._names, self._weights, strict=True)
        ]
        return tuple(name for _, name in sorted(drawn, reverse=True))
