"""A workflow to break: `mainspring worker examples/nightly.py`, then kill it with -9 and start it again.

Each step says which process runs it, so that you can see what is run twice (a step that was cut off) and what
is not (everything that had ended). docs/workflows.md walks through it.
"""

from __future__ import annotations

import asyncio
import os

from mainspring import Context, Limit, Mainspring

app = Mainspring()  # the file mainspring.db, unless MAINSPRING_DATABASE_URL says otherwise


@app.task
def fetch(ctx: Context, day: str) -> list[str]:
    ctx.log.info("fetch: process %d reads the sales of %s", os.getpid(), day)
    return [f"{day}/shop-{number}" for number in range(1, 13)]


@app.task(limits=[Limit("parts", concurrency=3)])
async def transform(ctx: Context, part: str, seconds: float) -> int:
    ctx.log.info("transform: process %d begins %s", os.getpid(), part)
    await asyncio.sleep(seconds)  # noqa: TID251 - long enough to kill somebody in the middle of it
    ctx.log.info("transform: process %d has done %s", os.getpid(), part)
    return len(part)


@app.task
def load(ctx: Context, sizes: list[int]) -> int:
    ctx.log.info("load: process %d adds up %d parts", os.getpid(), len(sizes))
    return sum(sizes)


@app.task
def notify(ctx: Context, total: int | None) -> None:
    ctx.log.info("notify: %s", "it failed" if total is None else f"{total} rows are in")


flow = app.workflow("nightly-load", deadline="1h")
raw = flow.step(fetch, day=flow.param("day"))
parts = flow.map(transform, over=raw, seconds=flow.param("seconds", default=2))
table = flow.step(load, parts)
flow.step(notify, table, when="always")
flow.returns(table)

app.schedule("nightly", flow, cron="0 2 * * *", tz="Europe/Berlin")
