"""History that is old enough goes, and what belongs to jobs that are on record no more."""

from __future__ import annotations

from datetime import timedelta

from mainspring.store.answering import KEPT
from mainspring.store.database import Database, Stamp, Transaction
from mainspring.store.effects import Effects
from mainspring.store.events import Events
from mainspring.store.rows import moment
from mainspring.store.runs import day_before
from mainspring.store.workflows.calls import Workflows

BATCH = 5000
"""Rows that one transaction deletes, so that it holds its locks for milliseconds only."""
WORKFLOWS = 10
"""The same for workflows, which may have thousands of steps."""
HISTORY = ("prune_runs", "prune_logs", "prune_slots")


async def prune(
    database: Database, effects: Effects, workflows: Workflows, events: Events, *, keep: timedelta, at: Stamp
) -> int:
    """Drop what is older than the days that are kept; answer how many rows or partitions went."""

    async def make_room(tx: Transaction) -> None:
        await tx.fetch("lock_migrations")
        await tx.fetch("add_partitions", at=at)

    await database.within("prune", make_room)
    [row] = await database.fetch("now", at=at)
    now = moment(row["now"])
    day = day_before(now, keep)
    gone = 0
    for statement in HISTORY:

        async def drop(tx: Transaction, statement: str = statement) -> int:
            await tx.fetch("lock_migrations")
            return len(await tx.fetch(statement, before=day, limit=BATCH))

        while count := await database.within("prune", drop):
            gone += count
    while await database.fetch("drop_keys", limit=BATCH, at=at):
        pass
    while await database.fetch("prune_requests", before=now - KEPT, limit=BATCH):
        pass
    gone += await effects.prune(before=day, limit=BATCH)
    gone += await workflows.prune(before=day, limit=WORKFLOWS)
    return gone + await events.prune(before=day, limit=BATCH)
