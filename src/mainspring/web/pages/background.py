"""What runs in the background of this process for a page, with how far it is: long questions, and replays of
many dead letters. What has ended is kept for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request

from mainspring.admin.admin import Admin
from mainspring.admin.dead_letters import PAGE, ReplayedPage
from mainspring.errors import MainspringError, NotFound
from mainspring.model.dead_letter import DeadFilter

MOST_KEPT = 20


class Stage(StrEnum):
    """How far a background task is."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Underway(Protocol):
    """What `Kept` keeps: something that runs, or has run."""

    id: int
    stage: Stage


T = TypeVar("T", bound=Underway)


class Kept(Generic[T]):
    """What runs or has run in this process, by number."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._all: dict[int, T] = {}
        self._last = 0

    def number(self) -> int:
        """For the next one."""
        self._last += 1
        return self._last

    def keep(self, one: T) -> T:
        """One more; the oldest that have ended are forgotten."""
        self._all[one.id] = one
        ended = [each.id for each in self._all.values() if each.stage is not Stage.RUNNING]
        for old in ended[: max(0, len(self._all) - MOST_KEPT)]:
            del self._all[old]
        return one

    def one(self, number: int) -> T:
        """One of them, or NotFound."""
        if number not in self._all:
            raise NotFound(self._kind, number)
        return self._all[number]

    def all(self) -> Iterable[T]:
        """Oldest first."""
        return self._all.values()


@dataclass(slots=True)
class BackgroundTask:
    """One long question."""

    id: int
    title: str
    author: str
    began_at: datetime
    stage: Stage = Stage.RUNNING
    done: int = 0
    total: int = 0
    """None of it known yet when it is 0."""
    answer: object = None
    error: str = ""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def told(self, done: int, total: int) -> None:
        """How far it is."""
        self.done, self.total = done, total


class BackgroundTasks:
    """The long questions of this process."""

    def __init__(self) -> None:
        self._kept: Kept[BackgroundTask] = Kept("task")

    def start(self, title: str, work: Work, *, author: str, now: datetime) -> BackgroundTask:
        """Begin one; one of that title that is under way is not begun a second time."""
        for each in self._kept.all():
            if each.title == title and each.stage is Stage.RUNNING:
                return each
        task = BackgroundTask(self._kept.number(), title, author, now)
        task.task = asyncio.create_task(_run(work, task), name=f"mainspring-task-{task.id}")
        return self._kept.keep(task)

    def cancel(self, task_id: int) -> bool:
        """Stop one; False when it had ended."""
        task = self._kept.one(task_id)
        if task.stage is not Stage.RUNNING or task.task is None:
            return False
        task.task.cancel()
        # At once, and not when the event loop comes to it: the page that is drawn next must say so.
        task.stage = Stage.CANCELLED
        return True

    def newest(self) -> list[BackgroundTask]:
        """The newest of each title."""
        return list({each.title: each for each in self._kept.all()}.values())


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
            _replay(admin, which, self._page, progress), name=f"mainspring-replay-{progress.id}"
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


Work = Callable[[BackgroundTask], Awaitable[object]]


def background_of(request: Request) -> BackgroundTasks:
    """Those of the app that serves this request."""
    state = request.app.state
    if not hasattr(state, "background"):
        state.background = BackgroundTasks()
    found: BackgroundTasks = state.background
    return found


async def _run(work: Work, task: BackgroundTask) -> None:
    try:
        task.answer = await work(task)
        task.stage = Stage.DONE
    except MainspringError as error:
        # No caller waits for this: its page shows the error.
        task.stage, task.error = Stage.FAILED, str(error)


async def _replay(admin: Admin, which: DeadFilter, page: int, progress: Progress) -> None:
    def on_page(done: ReplayedPage) -> bool:
        progress.looked_at += done.looked_at
        progress.replayed += len(done.job_ids)
        progress.left += done.left
        return progress.stopping  # between two pages, never within one: what is shown is what happened

    try:
        await admin.dead_letters.areplay_all(which, page=page, on_page=on_page)
        progress.stage = Stage.CANCELLED if progress.stopping else Stage.DONE
    except MainspringError as error:
        # No caller waits for this: its page shows the error.
        progress.stage, progress.error = Stage.FAILED, str(error)
