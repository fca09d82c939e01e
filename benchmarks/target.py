"""The app that the benchmarks' worker processes load."""

from __future__ import annotations

import time

from mainspring import Mainspring

app = Mainspring()


# With a timeout, as tasks should have: that is part of what a run costs.
@app.task(timeout=60)
async def noop(tenant: str, month: str) -> None:
    """As little as a handler can do, with arguments of an ordinary size."""


@app.task(timeout=60)
def sync_noop(tenant: str, month: str) -> None:
    """The same in a thread."""


@app.task(isolate=True)
async def isolated_noop(tenant: str, month: str) -> None:
    """The same in a child process."""


@app.task
async def stamp(sent_ns: int) -> int:
    """How long ago it was sent. The monotonic clock is one for all processes of a machine."""
    return time.monotonic_ns() - sent_ns
