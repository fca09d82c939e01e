"""Replays of many dead letters, each in the background of this process, with how far it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime

from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import PAGE, ReplayedPage
from mainspring.errors import MainspringError
from mainspring.model.dead_letter import DeadFilter
from mainspring.web.frame.kept import Kept, Stage


@dataclass(slots=True)
class Progress:
    """One replay."""

    id: int
    title: str
    author: str
    began_at: datetime
    total: int
    stage: Stage = Stage.RUNNING
    looked_at: int = 0
    replayed: int = 0
    left: int = 0
    """Letters of workflows, which go on by a retry of those."""
    error: str = ""
    stopping: bool = False
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Replays:
    """Those of this process, the newest first."""

    def __init__(self, *, page: int = PAGE) -> None:
        self._page = page
        self._kept: Kept[Progress] = Kept("replay")

    async def start(self, admin: Admin, which: DeadFilter, *, title: str) -> int:
        """Begin one; what it goes through is counted first."""
        total = await admin.dead_letters.acount(which)
        author, now = admin.context.actor.name, admin.context.clock.now()
        progress = Progress(self._kept.number(), title, author, now, total)
        progress.task = asyncio.create_task(
            _run(admin, which, self._page, progress), name=f"mainspring-replay-{progress.id}"
        )
        return self._kept.keep(progress).id

    def cancel(self, replay_id: int) -> None:
        """Stop after the page that is under way; what was put back stays in its queues."""
        self.one(replay_id).stopping = True

    def one(self, replay_id: int) -> Progress:
        """One of them, or NotFound."""
        return self._kept.one(replay_id)

    def all(self) -> list[Progress]:
        """Newest first."""
        return [*self._kept.all()][::-1]


async def _run(admin: Admin, which: DeadFilter, page: int, progress: Progress) -> None:
    def on_page(done: ReplayedPage) -> bool:
        progress.looked_at += done.looked_at
        progress.replayed += len(done.job_ids)
        progress.left += done.left
        return progress.stopping  # between two pages, never within one: what is shown is what happened

    try:
        await admin.dead_letters.areplay_all(which, page=page, on_page=on_page)
        progress.stage = Stage.CANCELLED if progress.stopping else Stage.DONE
    except MainspringError as error:
        # Nobody waits for this: its page says it.
        progress.stage, progress.error = Stage.FAILED, str(error)
