"""An app whose one schedule catches up every slot it missed."""

from __future__ import annotations

import asyncio

from mainspring import Context, Mainspring
from tests.e2e.target import note

app = Mainspring()


@app.task
async def take(ctx: Context) -> None:
    """Long enough to be in the way of others, if anything were."""
    note(ctx, "start", "minutely")
    await asyncio.sleep(0.05)
    note(ctx, "end", "minutely")


app.schedule("minutely", take, every="1m", misfire="all")
app.schedule("monthly", take, cron="0 0 1 * *")
