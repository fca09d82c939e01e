"""Asks the queue for as many jobs as there are free hands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from mainspring.clock import Clock
from mainspring.engine.crew import Crew
from mainspring.engine.membership import Membership
from mainspring.errors import AnswerLost
from mainspring.store.ports import JobQueue

LARGEST = 1000
"""Claims asked for at once, at most: a claim must stay short."""


class Claimer:
    """One claim a pass. It is woken by hints, and by freed hands while there is more to be had."""

    name = "claimer"

    def __init__(
        self,
        queue: JobQueue,
        crew: Crew,
        membership: Membership,
        clock: Clock,
        *,
        queues: Sequence[str],
        tasks: Callable[[], Sequence[str]],
        poll: timedelta,
    ) -> None:
        self._queue = queue
        self._crew = crew
        self._membership = membership
        self._clock = clock
        self._queues = queues
        self._tasks = tasks
        self._poll = poll
        self._hungry = False
        self._in_doubt = False
        self._stopped = False
        self.on_idle: Callable[[], None] = lambda: None
        """Called when a look found nothing, with nothing in hand and nothing left to write."""

    @property
    def wants_more(self) -> bool:
        """Whether a freed hand is worth a look at the queue: the last claim was filled."""
        return self._hungry

    @property
    def in_doubt(self) -> bool:
        """Whether the store may hold claims for us that we have not heard of."""
        return self._in_doubt

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopped = True

    async def tick(self) -> timedelta:
        worker_id = self._membership.id
        if worker_id is None or not self._membership.active or self._stopped:
            return self._poll
        if self._in_doubt:
            # An answer was lost: what was claimed for us must not wait for our lease to end.
            self._crew.start(await self._queue.held(worker_id, at=self._clock.stamp()))
            self._in_doubt = False
        quiet = self._crew.quiet
        asked = min(self._crew.free, LARGEST)
        if asked <= 0:
            self._hungry = True
            return self._poll
        try:
            claims = await self._queue.claim(
                worker_id, queues=self._queues, tasks=self._tasks(), limit=asked, at=self._clock.stamp()
            )
        except (AnswerLost, asyncio.CancelledError):
            self._in_doubt = True
            raise
        self._crew.start(claims)
        self._hungry = len(claims) == asked
        if quiet and not claims:
            self.on_idle()
        return timedelta() if self._hungry else self._poll
