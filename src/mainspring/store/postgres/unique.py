"""Inserting jobs that have keys on PostgreSQL: one transaction, with the keys locked in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mainspring.model.job import Inserted, NewJob, OnDuplicate
from mainspring.store.audit_log import signature
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.inserting import Batch, insert
from mainspring.store.rows import maybe_moment
from mainspring.store.uniqueness import Decision, Holder, decide


async def insert_unique(database: Database, batch: Batch, at: Stamp) -> list[Inserted]:
    """Make each job of the batch, or find the one that stands for it."""
    async with database.transaction("insert_jobs", life=batch.life) as transaction:
        done = await insert_unique_in(transaction, batch, at)
        if (entry := signature()) is not None:
            await entry.write(transaction, done)
        return done


async def insert_unique_in(transaction: Transaction, batch: Batch, at: Stamp) -> list[Inserted]:
    """The same, as a part of a transaction."""
    [row] = await transaction.fetch("now", at=at)
    holders = await _lock_keys(transaction, batch)
    found = await transaction.fetch("live_holders", ids=[each.job_id for each in holders.values()])
    live = {row["id"]: row["running"] for row in found}
    done = decide(batch.jobs, batch.ids, holders, live, row["now"])
    await _take_keys(transaction, batch.jobs, done, row["now"])
    await insert(transaction, batch.only(done.make), at)
    for place in done.replace:
        await _replace(transaction, batch, place, done.answers[place].job_id, at)
    return list(done.answers)


async def written(database: Database, batch: Batch) -> list[Inserted]:
    """What a batch came to that is known to have been written, though the answer was lost: what was
    made has the id that was reserved for it, and the holder of its key stands for the rest."""
    known = {row["id"] for row in await database.fetch("known_ids", ids=batch.ids)}
    wanted = sorted({job.unique.digest for job in batch.jobs if job.unique is not None})
    holders = {row["key"]: row["job_id"] for row in await database.fetch("key_holders", keys=wanted)}
    return [
        Inserted(job_id=job_id)
        if job.unique is None or job_id in known
        else Inserted(
            job_id=holders.get(job.unique.digest, job_id),
            created=False,
            replaced=job.unique.on_duplicate is OnDuplicate.REPLACE,
        )
        for job, job_id in zip(batch.jobs, batch.ids, strict=True)
    ]


async def _lock_keys(transaction: Transaction, batch: Batch) -> dict[bytes, Holder]:
    keys = {
        job.unique.digest: (job.unique.name, job_id)
        for job, job_id in zip(batch.jobs, batch.ids, strict=True)
        if job.unique is not None
    }
    ordered = sorted(keys)  # as everybody does, lest two batches wait for each other
    rows = await transaction.fetch(
        "lock_keys",
        keys=ordered,
        names=[keys[each][0] for each in ordered],
        job_ids=[keys[each][1] for each in ordered],
    )
    return {row["key"]: Holder(job_id=row["job_id"], until=maybe_moment(row["until"])) for row in rows}


async def _take_keys(transaction: Transaction, jobs: Sequence[NewJob], done: Decision, now: datetime) -> None:
    made = sorted(
        (key.digest, done.answers[place].job_id, None if key.period is None else now + key.period)
        for place in done.make
        if (key := jobs[place].unique) is not None
    )
    if made:
        await transaction.fetch(
            "take_keys",
            keys=[digest for digest, _, _ in made],
            job_ids=[job_id for _, job_id, _ in made],
            untils=[until for _, _, until in made],
        )


async def _replace(transaction: Transaction, batch: Batch, place: int, job_id: int, at: Stamp) -> None:
    job = batch.jobs[place]
    await transaction.fetch(
        "replace_job",
        id=job_id,
        payload=job.payload,
        priority=job.priority,
        queue_id=batch.queue_ids[place],
        run_at=job.run_at,
        delay=job.delay,
        max_attempts=job.max_attempts,
        trace=job.trace,
        at=at,
    )
