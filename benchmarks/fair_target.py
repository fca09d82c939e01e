"""The app of the benchmark of fair queues: where limits are declared, workers look after them, and the other
figures shall not pay for it."""

from __future__ import annotations

import time

from mainspring import Mainspring

app = Mainspring()
app.queue("default", fair_by="tenant")


@app.task
async def noop(tenant: str, month: str) -> None:
    """As little as a handler can do, with arguments of an ordinary size."""


@app.task
async def stamp(tenant: str, sent_ns: int) -> int:
    """How long ago it was sent. The monotonic clock is one for all processes of a machine."""
    return time.monotonic_ns() - sent_ns
