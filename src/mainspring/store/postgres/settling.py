"""Settlements on PostgreSQL: one statement for each verdict.

A job may begin to wait for an event as it is settled. The sender of the event and the settlement lock the
same row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, assert_never

import msgspec

from mainspring.model.checkpoint import EVERYBODY
from mainspring.model.run import Reason, Settlement, Verdict
from mainspring.store.codes import VERDICT_CODE
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Transaction
from mainspring.store.postgres.rows import written

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

Fetch = Callable[..., Awaitable["list[Record]"]]


async def settle_batch(fetch: Fetch, verdict: Verdict, batch: list[Settlement], at: Stamp) -> set[int]:
    """Write one group with the given `fetch`; answer the ids of the settled jobs."""
    params = {**_named(batch), "tooks": [s.took for s in batch], "at": at}
    match verdict:
        case Verdict.SUCCEEDED:
            results = [s.result for s in batch] if any(s.result is not None for s in batch) else None
            # Nearly all jobs are in their first claim, and the driver looks at each element of an array.
            fence = batch[0].fence
            if all(s.fence == fence for s in batch):
                params["fences"] = None
            [row] = await fetch("settle_succeeded", **params, fence=fence, results=results)
            return set(row["job_ids"] or ())
        case Verdict.DEAD | Verdict.FAILED | Verdict.CRASHED:
            dies = verdict is Verdict.DEAD or batch[0].reason is not None
            how = _dying(batch) if dies else {"delays": [s.delay for s in batch]}
            statement = "settle_dead" if dies else "settle_failed"
            rows = await fetch(
                statement, **params, **how, errors=_errors(batch), verdict=VERDICT_CODE[verdict]
            )
        case Verdict.RELEASED | Verdict.SNOOZED:
            back = {"rans": [s.ran for s in batch], "delays": [s.delay for s in batch]}
            rows = await fetch("settle_released", **params, **back, verdict=VERDICT_CODE[verdict])
        case Verdict.DISCARDED:
            rows = await fetch("settle_discarded", **params, errors=_errors(batch))
        case Verdict.STARTED:
            rows = await fetch("settle_started", **params, traces=[s.trace for s in batch])
        case Verdict.CANCELLED | Verdict.EDITED:
            raise ValueError(f"{verdict} is the store's to write, not a worker's")
        case _:
            assert_never(verdict)
    return {row["job_id"] for row in rows}


async def recorded(fetch: Fetch, settlements: Sequence[Settlement]) -> list[int]:
    """The jobs whose run under exactly this claim is in history."""
    found = []
    for _, batch in groups(settlements):
        found += await fetch("recorded_runs", **_named(batch))
    return [row["job_id"] for row in found]


def groups(settlements: Sequence[Settlement]) -> list[tuple[Verdict, list[Settlement]]]:
    """By verdict, worker and whether it ends the job, each sorted by job as the statements want it. Nearly
    always one group."""
    groups: dict[tuple[Verdict, int, bool], list[Settlement]] = defaultdict(list)
    for settlement in sorted(settlements, key=_job_id):
        groups[settlement.verdict, settlement.worker_id, settlement.reason is None].append(settlement)
    return [(verdict, batch) for (verdict, _, _), batch in groups.items()]


async def note_logs(
    transaction: Transaction, settlements: Sequence[Settlement], settled: set[int], at: Stamp
) -> None:
    """Write the captured logs of the settled runs, in the same transaction."""
    logged = [s for s in settlements if s.log is not None and s.job_id in settled]
    if logged:
        await transaction.fetch(
            "note_logs",
            job_ids=[s.job_id for s in logged],
            worker_ids=[s.worker_id for s in logged],
            fences=[s.fence for s in logged],
            texts=[s.log for s in logged],
            at=at,
        )


async def meet(fetch: Fetch, settlements: Sequence[Settlement]) -> list[Settlement]:
    """The same settlements, inside the transaction that writes them. A job whose event has come does not
    wait. A later sender of an event comes after this transaction, and finds the waiting jobs."""
    awaiting = [s for s in settlements if s.awaits is not None]
    places = sorted({(job_id, s.awaits or "") for s in awaiting for job_id in (EVERYBODY, s.job_id)})
    where = {"job_ids": [job_id for job_id, _ in places], "names": [name for _, name in places]}
    met: list[Record] = []
    while len(met) < len(places):  # a row that was pruned meanwhile is made again
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
    """Record that the settled jobs wait from now on."""
    waits = [s for s in settlements if s.awaits is not None and s.job_id in settled]
    await fetch(
        "put_waits",
        job_ids=[s.job_id for s in waits],
        names=[s.awaits for s in waits],
        fences=[s.fence for s in waits],
    )


def _dying(batch: list[Settlement]) -> dict[str, object]:
    return {"rans": [s.ran for s in batch], "reasons": [s.reason or Reason.FAILED for s in batch]}


def _errors(batch: list[Settlement]) -> list[str]:
    return [written(s.failure) for s in batch]


def _job_id(settlement: Settlement) -> int:
    return settlement.job_id


def _named(batch: list[Settlement]) -> dict[str, object]:
    """One worker's batch."""
    return {
        "worker_id": batch[0].worker_id,
        "job_ids": [s.job_id for s in batch],
        "fences": [s.fence for s in batch],
    }
