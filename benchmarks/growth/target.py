"""The app that the worker and scheduler processes load."""

from __future__ import annotations

from datetime import timedelta

from mainspring import Mainspring
from mainspring.waiting import pause

app = Mainspring()


@app.task
async def noop(tenant: str, month: str) -> None:
    """As little as a handler can do, with arguments of an ordinary size."""


@app.task
async def nap() -> None:
    """Longer than the worker lives that is killed."""
    await pause(timedelta(minutes=10))
