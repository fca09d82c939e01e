"""How many jobs stand in each queue, when there are too many to be counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mainspring.model.history import QueueDepth
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

COUNTED_PAGES = 1000
"""A table of that size is counted; of a larger one so many pages are looked at, drawn by lot."""
HEAD = 100
"""Jobs at the head of each lane that are counted whatever its length: short queues come out exactly."""

Key = tuple[int, int]


def read_depth(row: Record, names: Names) -> QueueDepth:
    """A row whose queue and task have been learnt."""
    return QueueDepth(
        queue=names.queue(row["queue_id"]),
        task=names.task(row["task_id"]),
        ready=row["ready"],
        delayed=row["delayed"],
        running=row["running"],
        oldest_ready_at=row["oldest_ready_at"],
        about=row["about"],
    )


async def estimated_depth(database: Database, names: Names, at: Stamp) -> list[QueueDepth] | None:
    """None when it is small enough to be counted."""
    [size] = await database.fetch("jobs_size")
    if size["pages"] <= COUNTED_PAGES:
        return None
    percent = 100 * COUNTED_PAGES / size["pages"]
    heads = await database.fetch("head_depth", most=HEAD, at=at)
    sampled = {_key(row): row for row in await database.fetch("sampled_depth", percent=percent, at=at)}
    keys = {_key(row) for row in heads} | sampled.keys()
    await names.learn({queue for queue, _ in keys}, {task for _, task in keys})
    due = {_key(row): read_depth(row, names) for row in heads if row["due"]}
    later = {_key(row): read_depth(row, names) for row in heads if not row["due"]}
    cut_due = {row["queue_id"] for row in heads if row["due"] and row["about"]}
    cut_later = {row["queue_id"] for row in heads if not row["due"] and row["about"]}
    depths = []
    for key in keys:
        nothing = QueueDepth(
            queue=names.queue(key[0]),
            task=names.task(key[1]),
            ready=0,
            delayed=0,
            running=0,
            oldest_ready_at=None,
        )
        now, then = due.get(key, nothing), later.get(key, nothing)
        depth = replace(
            now,
            delayed=then.delayed,
            running=now.running + then.running,
            about=key[0] in cut_due or key[0] in cut_later,
        )
        if key in sampled:
            seen = sampled[key]
            if key[0] in cut_due:
                running = max(depth.running, seen["running"])
                depth = replace(depth, ready=max(depth.ready, seen["ready"]), running=running)
            if key[0] in cut_later:
                depth = replace(depth, delayed=max(depth.delayed, seen["delayed"]))
        if depth.ready or depth.delayed or depth.running:
            depths.append(depth)
    return depths


def _key(row: Record) -> Key:
    return row["queue_id"], row["task_id"]
