"""The app of the tests of alerts: something of everything that can go wrong with a schedule."""

from __future__ import annotations

import os
import time

from mainspring import Mainspring, Retry

STUCK_UNTIL = "stuck.txt"

app = Mainspring()


@app.task(retry=Retry(attempts=1))
async def breaks() -> None:
    """Never succeeds."""
    raise ValueError("broken")


@app.task
def stuck() -> None:
    """Ends when somebody has put a file into the working directory."""
    while not os.path.exists(STUCK_UNTIL):
        time.sleep(0.05)


@app.task(retry=Retry(attempts=1000, base="1s", shape="fixed"))
def away() -> None:
    """Fails until its provider is back, and is tried again until then."""
    if not os.path.exists(STUCK_UNTIL):
        raise ConnectionError("the provider is away")


@app.task
async def fine() -> None:
    """Nothing is wrong with it."""


@app.task(queue="nobodys")
async def unserved() -> None:
    """Nobody serves its queue."""


app.schedule("breaking", breaks, every="1s")
app.schedule("sticking", stuck, every="1s", expect_finish_by="2s")
app.schedule("waiting", unserved, every="1s", expect_start_within="2s")
app.schedule("fine", fine, every="1s")
