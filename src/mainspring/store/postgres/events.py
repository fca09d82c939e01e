"""Waits for events that jobs begin as they are settled: whoever sends meets them at a row that both lock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.checkpoint import EVERYBODY
from mainspring.model.run import Settlement

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

Fetch = Callable[..., Awaitable["list[Record]"]]


async def meet(fetch: Fetch, settlements: Sequence[Settlement]) -> list[Settlement]:
    """The same settlements, inside the transaction that writes them: a job whose event has come does not
    wait for it, and whoever sends one that has not comes after us and finds our jobs waiting."""
    awaiting = [s for s in settlements if s.awaits is not None]
    places = sorted({(job_id, s.awaits or "") for s in awaiting for job_id in (EVERYBODY, s.job_id)})
    where = {"job_ids": [job_id for job_id, _ in places], "names": [name for _, name in places]}
    met: list[Record] = []
    while len(met) < len(places):  # one that was pruned in between is made anew
        await fetch("add_events", **where)
        met = await fetch("meet_events", **where)
    sent = {(row["job_id"], row["name"]) for row in met if row["sent"]}
    return [
        msgspec.structs.replace(s, delay=timedelta(), awaits=None)
        if sent & {(EVERYBODY, s.awaits), (s.job_id, s.awaits)}
        else s
        for s in settlements
    ]


async def put_waits(fetch: Fetch, settlements: Sequence[Settlement], settled: set[int]) -> None:
    """Those that were settled wait from now on."""
    waits = [s for s in settlements if s.awaits is not None and s.job_id in settled]
    await fetch(
        "put_waits",
        job_ids=[s.job_id for s in waits],
        names=[s.awaits for s in waits],
        fences=[s.fence for s in waits],
    )
