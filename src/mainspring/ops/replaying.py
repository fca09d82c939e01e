"""Putting many dead letters back, page by page and no faster than asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec

from mainspring.clock import Clock
from mainspring.model.history import DeadFilter
from mainspring.model.value import Value
from mainspring.store.ports import Store
from mainspring.waiting import pause

PAGE = 500
_MOMENT = timedelta(microseconds=1)


class Replayed(Value, frozen=True, kw_only=True):
    """One page that is done: every letter of it from `last_id` up has been looked at."""

    job_ids: tuple[int, ...]
    looked_at: int
    last_id: int
    workflows: tuple[int, ...] = ()
    """Those to which letters belong that were left: a retry of a workflow runs what failed in it."""
    left: int = 0
    """How many these letters are."""


class Replay:
    """Dead letters of one kind, as they are when it begins: one that dies again meanwhile is left alone."""

    def __init__(
        self, store: Store, clock: Clock, which: DeadFilter, *, per_second: float | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._which = which
        self._per_second = per_second

    async def count(self, most: int) -> int:
        """How many there are to do, counted up to this many."""
        return await self._store.dead_letters.count(msgspec.structs.replace(self._which, limit=most))

    async def pages(self, *, page: int = PAGE) -> AsyncIterator[Replayed]:
        """Downwards by id; each page is in its queues when it is told of."""
        which = await self._as_of_now(page)
        while letters := await self._store.dead_letters.find(which):
            began = self._clock.monotonic()
            ids = [each.id for each in letters]
            back = await self._store.dead_letters.replay(ids, at=self._clock.stamp())
            owners = [each.workflow_id for each in letters if each.workflow_id is not None]
            yield Replayed(
                job_ids=tuple(back),
                looked_at=len(ids),
                last_id=ids[-1],
                workflows=tuple(dict.fromkeys(owners)),
                left=len(owners),
            )
            which = msgspec.structs.replace(which, before=ids[-1])
            await self._rest(len(back), began)

    async def _as_of_now(self, page: int) -> DeadFilter:
        size = page if self._per_second is None else max(1, min(page, int(self._per_second)))
        now = await self._store.now(at=self._clock.stamp())
        until = min(now + _MOMENT, self._which.died_before or now + _MOMENT)
        return msgspec.structs.replace(self._which, died_before=until, limit=size)

    async def _rest(self, done: int, began: float) -> None:
        if self._per_second is None or not done:
            return
        left = done / self._per_second - (self._clock.monotonic() - began)
        if left > 0:
            await pause(timedelta(seconds=left))
