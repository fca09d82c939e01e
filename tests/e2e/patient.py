"""An app whose handlers sleep and wait in child processes."""

from __future__ import annotations

import os

from mainspring import Context, Mainspring

app = Mainspring()


@app.task(isolate=True)
async def patient(ctx: Context) -> list[object]:
    first = await ctx.astep("first", os.getpid)
    await ctx.asleep("1s")
    return [await ctx.await_event("go"), first, os.getpid()]


@app.task(isolate=True)
def patient_plain(ctx: Context) -> list[object]:
    first = ctx.step("first", os.getpid)
    ctx.sleep("1s")
    return [ctx.wait_event("go"), first, os.getpid()]
