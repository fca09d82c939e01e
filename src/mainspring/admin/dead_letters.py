"""Dead letters: find them, edit their arguments, replay them, delete them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta

import msgspec

from mainspring.admin.jobs import Done, replayed
from mainspring.admin.order import Noun, blocking, carried_out, one_or_more, order
from mainspring.admin.schedules.orders import effects
from mainspring.clock import Clock
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.dead_letter import DeadFilter, DeadGroup, DeadJob
from mainspring.model.job import Failure
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.tasks import payload
from mainspring.waiting import pause

PAGE = 500
MOST_COUNTED = 1_000_000
ALL = DeadFilter()
_TRIES = 3
_MOMENT = timedelta(microseconds=1)
Arguments = tuple[list[object], dict[str, object]]
Change = Callable[[DeadJob, Arguments], Arguments]
"""Takes a letter and its arguments, and answers the new arguments, or raises."""


class ReplayedPage(Value, frozen=True, kw_only=True):
    """One page of a replay: every letter of it from `last_id` upwards was checked."""

    job_ids: tuple[int, ...]
    looked_at: int
    last_id: int
    workflows: tuple[int, ...] = ()
    """The workflows whose letters were not replayed: a retry of the workflow runs its failed steps."""
    left: int = 0
    """How many letters belong to workflows and were not replayed."""


OnPage = Callable[[ReplayedPage], bool | None]
"""Called after each page; True ends the replay there."""


class Replayed(Value, frozen=True, kw_only=True):
    """What a replay of many letters did."""

    job_ids: tuple[int, ...] = ()
    looked_at: int = 0
    last_id: int | None = None
    """The lowest id that was checked: the replay can continue below this id."""
    workflows: tuple[int, ...] = ()
    left: int = 0

    def with_page(self, page: ReplayedPage) -> Replayed:
        """This and one more page."""
        return Replayed(
            job_ids=(*self.job_ids, *page.job_ids),
            looked_at=self.looked_at + page.looked_at,
            last_id=page.last_id,
            workflows=tuple(dict.fromkeys((*self.workflows, *page.workflows))),
            left=self.left + page.left,
        )


def _summary(answer: Replayed) -> object:
    return {"replayed": len(answer.job_ids), "left": answer.left}


def _is_filter(which: object) -> bool:
    return isinstance(which, DeadFilter)


class DeadLetters(Noun):
    """Dead letters of one store."""

    async def aget(self, job_id: int) -> DeadJob:
        """One dead letter."""
        found = await (await self._store()).dead_letters.find(DeadFilter(ids=(job_id,), limit=1))
        if not found:
            raise NotFound("dead letter", job_id)
        return found[0]

    async def afind(self, which: DeadFilter = ALL) -> list[DeadJob]:
        """One page of dead letters, newest first."""
        return await (await self._store()).dead_letters.find(which)

    async def acount(self, which: DeadFilter = ALL, *, most: int = MOST_COUNTED) -> int:
        """How many there are, counted up to `most`."""
        return await (await self._store()).dead_letters.count(msgspec.structs.replace(which, limit=most))

    async def agroups(self, which: DeadFilter = ALL) -> list[DeadGroup]:
        """Dead letters by task and last error, the largest group first."""
        return await (await self._store()).dead_letters.groups(which)

    @order("dead.edit", result=lambda answer: {"changed": answer[1]})
    async def aedit(self, job_id: int, change: Change) -> tuple[DeadJob, bool]:
        """Change the arguments of one dead letter; answer the letter as it is then, and whether it changed.
        The arguments that it had stay on record."""
        store = await self._store()
        note = Failure(type="Edited", message=f"its arguments were edited by {self._author}")
        for _ in range(_TRIES):
            letter = await self.aget(job_id)
            args, kwargs = change(letter, payload.decode(letter.payload))
            changed = payload.encode(args, kwargs, field=letter.task)
            if changed == letter.payload:
                return letter, False
            edited = msgspec.structs.replace(letter, payload=changed)
            answer = await carried_out(
                store.dead_letters.edit(
                    job_id, payload=changed, expected=letter.payload, note=note, at=self._stamp
                ),
                lambda done, edited=edited: (edited, done),  # type: ignore[misc]
            )
            # If the letter was changed meanwhile, the next try starts from its new arguments.
            if answer[1]:
                return await self.aget(job_id), True
        raise NotFound("dead letter", job_id)

    @order("dead.replay", result=effects)
    async def areplay(self, ids: int | Sequence[int]) -> list[Done]:
        """Put dead jobs back into their queues, with all attempts restored and without a deadline."""
        return await replayed(await self._store(), one_or_more(ids), at=self._stamp)

    @order("dead.replay", result=_summary, several=True)
    async def areplay_all(
        self,
        which: DeadFilter = ALL,
        *,
        per_second: float | None = None,
        page: int = PAGE,
        on_page: OnPage | None = None,
    ) -> Replayed:
        """Replay all dead letters that match now, from the newest id down and not faster than `per_second`. A
        letter that dies again meanwhile is not replayed again."""
        done = Replayed()
        pages = _Replay(await self._store(), self._clock, which, per_second).pages(page)
        async for each in pages:
            done = done.with_page(each)
            if on_page is not None and on_page(each):
                break
        return done

    @order("dead.purge", result=lambda count: {"purged": count}, several=_is_filter)
    async def apurge(self, which: int | Sequence[int] | DeadFilter) -> int:
        """Delete dead letters for good; answer how many. If ids are given, all of them must exist."""
        store = await self._store()
        if isinstance(which, DeadFilter):
            return sum([await store.dead_letters.purge(page) async for page in _pages(store, which)])
        ids = one_or_more(which)
        letters = await store.dead_letters.find(DeadFilter(ids=tuple(ids), limit=max(len(ids), 1)))
        for missing in set(ids) - {each.id for each in letters}:
            raise NotFound("dead letter", missing)
        return await carried_out(store.dead_letters.purge(ids))

    @order("dead.purge", result=lambda answer: {"purged": answer[0]})
    async def apurge_page(self, which: DeadFilter) -> tuple[int, bool]:
        """Delete the newest dead letters that match, at most the filter's limit; answer how many were
        deleted, and whether no more match."""
        store = await self._store()
        ids = [each.id for each in await store.dead_letters.find(which)]
        return await carried_out(
            store.dead_letters.purge(ids), lambda purged: (purged, len(ids) < which.limit)
        )

    get = blocking(aget)
    find = blocking(afind)
    count = blocking(acount)
    groups = blocking(agroups)
    edit = blocking(aedit)
    replay = blocking(areplay)
    replay_all = blocking(areplay_all)
    purge = blocking(apurge)
    purge_page = blocking(apurge_page)


def changed(
    *, args: Sequence[object] | None = None, kwargs: dict[str, object] | None = None, **single: object
) -> Change:
    """A change: `args` and `kwargs` replace the old arguments, then the single keyword arguments apply."""
    if args is None and kwargs is None and not single:
        raise InvalidArgument("change", {}, "args, kwargs or a keyword argument")

    def change(letter: DeadJob, had: Arguments) -> Arguments:
        return list(had[0] if args is None else args), {**(had[1] if kwargs is None else kwargs), **single}

    return change


class _Replay:
    """Dead letters that match, as they are when the replay begins."""

    def __init__(self, store: Store, clock: Clock, which: DeadFilter, per_second: float | None) -> None:
        self._store, self._clock, self._which, self._per_second = store, clock, which, per_second

    async def pages(self, page: int) -> AsyncIterator[ReplayedPage]:
        """Downwards by id; each page is in its queues when it is answered."""
        which = await self._as_of_now(page)
        while letters := await self._store.dead_letters.find(which):
            began = self._clock.monotonic()
            ids = [each.id for each in letters]
            back = await self._store.dead_letters.replay(ids, at=self._clock.stamp())
            owners = [each.workflow_id for each in letters if each.workflow_id is not None]
            yield ReplayedPage(
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


async def _pages(store: Store, which: DeadFilter) -> AsyncIterator[list[int]]:
    page = msgspec.structs.replace(which, limit=PAGE)
    while letters := await store.dead_letters.find(page):
        yield [each.id for each in letters]
        page = msgspec.structs.replace(page, before=letters[-1].id)
