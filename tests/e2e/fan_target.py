"""An app whose workflow spreads out over a thousand items and joins them. Its handlers tell the log of
target.py what they do."""

from __future__ import annotations

import asyncio

from mainspring import Context, Mainspring
from tests.e2e.target import note

app = Mainspring()


@app.task
async def spread(ctx: Context, count: int) -> list[int]:
    note(ctx, "spread")
    return list(range(count))


@app.task
async def part(ctx: Context, number: int) -> int:
    note(ctx, "start")
    await asyncio.sleep(0.04)
    note(ctx, "end")
    return number * 2


@app.task
async def gather(ctx: Context, parts: list[int]) -> list[int]:
    note(ctx, "gather")
    return [len(parts), sum(parts)]


flow = app.workflow("fan-out")
flow.returns(flow.step(gather, flow.map(part, over=flow.step(spread, flow.param("count")))))
