"""Ten thousand declared schedules, none of which is due for an hour."""

from __future__ import annotations

from mainspring import Mainspring

MANY = 10_000

app = Mainspring()


@app.task
def bill(tenant: int) -> None:
    """What every tenant gets."""


for tenant in range(MANY):
    app.schedule(f"bill-{tenant:05}", bill, every=f"{60 + tenant % 200}m", args=[tenant])
