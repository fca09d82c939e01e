"""Replays of many dead letters, each in the background of this process, with how far it is."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from mainspring.clock import Clock
from mainspring.errors import MainspringError, NotFound
from mainspring.model.history import DeadFilter
from mainspring.ops.replaying import PAGE, Replay
from mainspring.store.ports import Store

MOST_COUNTED = 1_000_000
MOST_KEPT = 20


class Stage(StrEnum):
    """Where a replay stands."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


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
    """Those of this process, the newest first; ended ones are kept for a while."""

    def __init__(self, *, page: int = PAGE) -> None:
        self._page = page
        self._all: OrderedDict[int, Progress] = OrderedDict()
        self._last = 0

    async def start(self, store: Store, clock: Clock, which: DeadFilter, *, title: str, author: str) -> int:
        """Begin one; what it goes through is counted first."""
        replay = Replay(store, clock, which)
        total = await replay.count(MOST_COUNTED)
        self._last += 1
        progress = Progress(self._last, title, author, clock.now(), total)
        progress.task = asyncio.create_task(
            _run(replay, self._page, progress), name=f"mainspring-replay-{progress.id}"
        )
        self._all[progress.id] = progress
        self._forget()
        return progress.id

    def cancel(self, replay_id: int) -> None:
        """Stop after the page that is under way; what was put back stays in its queues."""
        self.one(replay_id).stopping = True

    def one(self, replay_id: int) -> Progress:
        """One of them, or NotFound."""
        if replay_id not in self._all:
            raise NotFound("replay", replay_id)
        return self._all[replay_id]

    def all(self) -> list[Progress]:
        """Newest first."""
        return list(reversed(self._all.values()))

    def _forget(self) -> None:
        ended = [each.id for each in self._all.values() if each.stage is not Stage.RUNNING]
        for replay_id in ended[: max(0, len(self._all) - MOST_KEPT)]:
            del self._all[replay_id]


async def _run(replay: Replay, page: int, progress: Progress) -> None:
    try:
        async for done in replay.pages(page=page):
            progress.looked_at += done.looked_at
            progress.replayed += len(done.job_ids)
            progress.left += done.left
            if progress.stopping:
                # Between two pages, never within one: what is told here is what happened.
                progress.stage = Stage.CANCELLED
                return
        progress.stage = Stage.DONE
    except MainspringError as error:
        # Nobody waits for this: its page says it.
        progress.stage, progress.error = Stage.FAILED, str(error)
