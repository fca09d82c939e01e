"""Questions that take long, each in the background of this process, with how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from starlette.requests import Request

from mainspring.errors import MainspringError
from mainspring.web.frame.kept import Kept, Stage


@dataclass(slots=True)
class Errand:
    """One of them."""

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


Work = Callable[[Errand], Awaitable[object]]


class Errands:
    """Those of this process."""

    def __init__(self) -> None:
        self._kept: Kept[Errand] = Kept("errand")

    def start(self, title: str, work: Work, *, author: str, now: datetime) -> Errand:
        """Begin one; one of that title that is under way is not begun a second time."""
        for each in self._kept.all():
            if each.title == title and each.stage is Stage.RUNNING:
                return each
        errand = Errand(self._kept.number(), title, author, now)
        errand.task = asyncio.create_task(_run(work, errand), name=f"mainspring-errand-{errand.id}")
        return self._kept.keep(errand)

    def cancel(self, errand_id: int) -> bool:
        """Stop one; False when it had ended."""
        errand = self._kept.one(errand_id)
        if errand.stage is not Stage.RUNNING or errand.task is None:
            return False
        errand.task.cancel()
        # At once, and not when the event loop comes to it: the page that is drawn next must say so.
        errand.stage = Stage.CANCELLED
        return True

    def newest(self) -> list[Errand]:
        """The newest of each title."""
        return list({each.title: each for each in self._kept.all()}.values())


def errands_of(request: Request) -> Errands:
    """Those of the app that serves this request."""
    state = request.app.state
    if not hasattr(state, "errands"):
        state.errands = Errands()
    found: Errands = state.errands
    return found


async def _run(work: Work, errand: Errand) -> None:
    try:
        errand.answer = await work(errand)
        errand.stage = Stage.DONE
    except MainspringError as error:
        # Nobody waits for this: its page says it.
        errand.stage, errand.error = Stage.FAILED, str(error)
