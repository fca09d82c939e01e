"""The app of the tests of limits. Apart from the others: where a limit is declared, every worker looks after
the limit keys."""

from __future__ import annotations

import asyncio

from mainspring import Context, Limit, Mainspring
from tests.e2e.target import note

FLOOD = "flood"

app = Mainspring()
app.queue("fair", fair_by="tenant")


@app.task(limits=[Limit("five", concurrency=5)])
async def shared(ctx: Context, seconds: float) -> None:
    """No more than five at once."""
    await _work(ctx, seconds)


@app.task(limits=[Limit("tenant", by="tenant", concurrency=2)])
async def owned(ctx: Context, tenant: str, seconds: float) -> None:
    """No more than two of a tenant at once."""
    await _work(ctx, seconds)


@app.task(limits=[Limit("rated", rate=20, per="1s", burst=5)])
async def rated(ctx: Context) -> None:
    """Twenty a second, five of them together."""
    note(ctx, "start")


@app.task(queue="fair")
async def visit(ctx: Context, tenant: str) -> None:
    """Tenants take turns; only those who do not flood are written down."""
    if tenant != FLOOD:
        note(ctx, "start")


async def _work(ctx: Context, seconds: float) -> None:
    note(ctx, "start")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note(ctx, "cancelled")
        raise
    note(ctx, "end")
