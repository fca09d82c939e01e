"""Goes on with workflows whose steps have ended."""

from __future__ import annotations

from datetime import timedelta

from mainspring.clock import Clock
from mainspring.entropy import Entropy
from mainspring.store.workflows.calls import Workflows
from mainspring.telemetry.events import Telemetry, WorkflowEnded

BATCH = 1000
"""Endings dealt with in one transaction, which has their workflows locked."""
BUSY = timedelta(milliseconds=10)
"""Another process has locked the same workflows: it may have looked before the last one ended."""


class WorkflowResolver:
    """One pass over the endings of steps. Every worker has one; each workflow is processed by
    one of them at a time."""

    name = "workflow_resolver"

    def __init__(
        self, workflows: Workflows, clock: Clock, entropy: Entropy, telemetry: Telemetry, *, poll: timedelta
    ) -> None:
        self._workflows = workflows
        self._clock = clock
        self._entropy = entropy
        self._telemetry = telemetry
        self._poll = poll
        self._news = False

    async def tick(self) -> timedelta:
        done = await self._workflows.resolve(limit=BATCH, at=self._clock.stamp())
        for each in done.ended:
            self._telemetry.emit(
                WorkflowEnded(workflow_id=each.workflow_id, name=each.name, state=each.state)
            )
        self._news = self._news or bool(done.taken) or done.busy
        if done.busy:
            return BUSY * (0.5 + self._entropy.fraction())
        return timedelta() if done.taken else self._poll

    async def relieve(self) -> bool:
        """One pass, before a burst ends because nothing is left to do. Whether there was something, now or
        since this was last asked."""
        await self.tick()
        news, self._news = self._news, False
        return news
