"""Queues: their depths and their pauses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from mainspring.errors import StoreError
from mainspring.model.queue import QueueDepth, QueuePause
from mainspring.store.audit_log import carried_out
from mainspring.store.database import Database, Stamp, Transaction, reads
from mainspring.store.rows import reader
from mainspring.waiting import pause

_pause = reader(QueuePause)
_depth = reader(QueueDepth)

LOOK_EVERY = timedelta(milliseconds=5)
LOOKS = 1000
COUNTED_PAGES = 1000
"""The jobs in a table of up to this size are counted. From a larger table, a sample of so many pages is
read."""
HEAD = 100
"""The number of jobs at the head of each priority level that are always counted, so that the depth of a short
queue is exact."""

Key = tuple[str, str]
"""A queue and a task."""


class Queues:
    """Pauses and depths of queues."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def pause(self, queue: str, *, author: str, note: str | None, at: Stamp) -> bool:
        """Pause a queue, so that no job is claimed from it; False when it was paused already. When this call
        returns, no earlier claim can still take a job."""

        async def work(tx: Transaction) -> bool:
            await tx.fetch("lock_priority_levels")
            paused = await tx.fetch("pause_queue", queue=queue, author=author, note=note, at=at)
            await tx.fetch("mark_priority_levels", queue=queue, paused=True)
            return bool(paused)

        paused = await carried_out(self._database, "pause_queue", work)
        await self._claims_have_ended()
        return paused

    async def resume(self, queue: str) -> bool:
        """End the pause of a queue; False when it was not paused."""

        async def work(tx: Transaction) -> bool:
            await tx.fetch("lock_priority_levels")
            resumed = await tx.fetch("resume_queue", queue=queue)
            await tx.fetch("mark_priority_levels", queue=queue, paused=False)
            tx.hint(earlier=True)
            return bool(resumed)

        return await carried_out(self._database, "resume_queue", work)

    @reads
    async def pauses(self) -> list[QueuePause]:
        """Queues that are paused, by name."""
        return [_pause(row) for row in await self._database.fetch("queue_pauses")]

    @reads
    async def depth(self, *, at: Stamp, about: bool = False) -> list[QueueDepth]:
        """The queue depth: live jobs by queue and task. With `about`, a store may estimate the depth of
        queues that are too long to be counted; this is for callers that ask often. The oldest job is always
        exact."""
        depths = await self._estimated(at) if about else None
        if depths is None:
            depths = [_depth(row) for row in await self._database.fetch("depth", at=at)]
        return sorted(depths, key=_key)

    async def _claims_have_ended(self) -> None:
        """Wait for claims that began before the pause, because such a claim may not have seen the pause.
        After their end no job can be claimed from the queue. Claims are short: a long claim means that the
        server hangs."""
        [row] = await self._database.fetch("now", at=None)
        for _ in range(LOOKS):
            [found] = await self._database.fetch("claims_under_way", began=row["now"])
            if found["claims"] == 0:
                return
            await pause(LOOK_EVERY)
        raise StoreError("the queue is paused, but a claim from before has not ended and may still take jobs")

    async def _estimated(self, at: Stamp) -> list[QueueDepth] | None:
        """The estimated depths; None when there are few enough jobs to be counted."""
        [size] = await self._database.fetch("jobs_size")
        if size["pages"] <= COUNTED_PAGES:
            return None
        percent = 100 * COUNTED_PAGES / size["pages"]
        heads = await self._database.fetch("head_depth", most=HEAD, at=at)
        sampled = await self._database.fetch("sampled_depth", percent=percent, at=at)
        return _together(
            due=[_depth(row) for row in heads if row["due"]],
            later=[_depth(row) for row in heads if not row["due"]],
            sampled=[_depth(row) for row in sampled],
        )


def _together(
    *, due: Sequence[QueueDepth], later: Sequence[QueueDepth], sampled: Sequence[QueueDepth]
) -> list[QueueDepth]:
    """The depths from the counted heads of the priority levels, of due jobs and of later jobs, and from the
    sample where a queue is longer than its heads."""
    now, then, seen = ({_key(each): each for each in group} for group in (due, later, sampled))
    long_due = {each.queue for each in due if each.about}
    long_later = {each.queue for each in later if each.about}
    depths = []
    for key in now.keys() | then.keys() | seen.keys():
        queue, task = key
        nothing = QueueDepth(queue=queue, task=task, ready=0, delayed=0, running=0, oldest_ready_at=None)
        head, rest, sample = now.get(key, nothing), then.get(key, nothing), seen.get(key, nothing)
        depth = replace(
            head,
            delayed=rest.delayed,
            running=head.running + rest.running,
            about=queue in long_due or queue in long_later,
        )
        if queue in long_due:
            ready, running = max(depth.ready, sample.ready), max(depth.running, sample.running)
            depth = replace(depth, ready=ready, running=running)
        if queue in long_later:
            depth = replace(depth, delayed=max(depth.delayed, sample.delayed))
        if depth.ready or depth.delayed or depth.running:
            depths.append(depth)
    return depths


def _key(depth: QueueDepth) -> Key:
    return depth.queue, depth.task
