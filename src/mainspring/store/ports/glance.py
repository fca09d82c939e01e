"""What can be looked at every second, however much there is."""

from __future__ import annotations

from typing import Protocol

from mainspring.model.glance import RunningJob


class GlanceStore(Protocol):
    """Each call reads a bounded number of rows, whatever the tables hold."""

    async def running(self, *, limit: int) -> list[RunningJob]:
        """Jobs that workers hold, those held longest first. They are looked for at the heads of the queues,
        where claims leave them: in a queue whose head is thousands of jobs that no worker can run, some may
        be missing."""
