"""An order that takes days: `mainspring dev examples/order.py`, and in another terminal

    mainspring enqueue -A examples/order.py fulfil order=7
    mainspring events send approved '{"by": "ann"}' --job ID

ID is what the first command printed. Kill the worker wherever you like and start it again: what is on record
is not done a second time.
"""

from __future__ import annotations

from mainspring import Context, Mainspring

app = Mainspring()  # the file mainspring.db, unless MAINSPRING_DATABASE_URL says otherwise


async def charge(order: int, token: str) -> dict[str, object]:
    """A call to a payment service; the token keeps it from charging twice."""
    return {"order": order, "receipt": f"r-{token[:8]}"}


def ship(order: int) -> str:
    """A plain function runs in a thread."""
    return f"parcel-{order}"


async def mail(order: int, words: str) -> None:
    """Tell the customer."""
    print(f"order {order}: {words}")


@app.task
async def fulfil(ctx: Context, order: int) -> dict[str, object]:
    """From the payment to the question how it was."""
    paid = await ctx.astep("charge", charge, order, ctx.token)
    answer = await ctx.await_event("approved", timeout="7d", default=None)
    if answer is None:
        await ctx.astep("refuse", mail, order, "nobody approved it")
        return {"shipped": None, **paid}
    parcel = await ctx.astep("ship", ship, order)
    await ctx.asleep("3d")
    await ctx.astep("ask", mail, order, "how was it?")
    return {"shipped": parcel, "approved": answer, **paid}
