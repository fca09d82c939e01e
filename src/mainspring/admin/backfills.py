"""Backfills: slots of the past, run on request by the schedulers, whatever the policies and pauses say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Self

import msgspec

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.admin.schedules.backfill_plan import PlannedSlot, judge, left_out, slots_between
from mainspring.admin.schedules.triggers import calendars_of
from mainspring.admin.slot_verification.ledger import ledger
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.job import JobState
from mainspring.model.schedule import (
    Backfill,
    BackfillState,
    NewBackfill,
    Overlap,
    Reprocess,
    ScheduleVersion,
)
from mainspring.model.value import Value
from mainspring.store.database import Stamp
from mainspring.store.store import Store

MOST_AT_ONCE = 1000
_PAGE = 1000
_MOST_ROWS = 1_000_000
_EVER, _INSTANT = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


class BackfillPlan(Value, frozen=True, kw_only=True):
    """What a backfill would do, slot by slot, in the order in which they would run."""

    schedule: str
    start: datetime
    end: datetime
    max_active: int
    reverse: bool
    reprocess: Reprocess
    slots: tuple[PlannedSlot, ...]

    @property
    def to_run(self) -> tuple[PlannedSlot, ...]:
        """Those that are to be run."""
        return tuple(each for each in self.slots if each.run)


class Backfills(Noun):
    """Backfills of one store."""

    async def aplan(
        self,
        name: str,
        *,
        start: datetime,
        end: datetime,
        max_active: int | None = None,
        reverse: bool = False,
        reprocess: Reprocess = Reprocess.NONE,
    ) -> BackfillPlan:
        """Which slots from `start` on and before `end` would be run. Without `max_active`, one job at a
        time, or as many as the schedule allows to overlap."""
        store = await self._store()
        now = await store.now(at=self._stamp)
        _check_range(start, end, now)
        versions = await _versions(store, name)
        calendars = await calendars_of(store, {each.schedule.trigger for each in versions})
        slots = slots_between(versions, start, end, calendars)
        rows = await ledger(store, name, start=start, most=_MOST_ROWS)
        wanted = {slot.slot_at for slot in slots}
        named = [row.job_id for row in rows if row.job_id is not None and row.slot_at in wanted]
        judged = judge(slots, rows, await _states(store, named, self._stamp), reprocess)
        return BackfillPlan(
            schedule=name,
            start=start,
            end=end,
            max_active=_at_once(max_active, versions[-1]),
            reverse=reverse,
            reprocess=reprocess,
            slots=tuple(reversed(judged) if reverse else judged),
        )

    async def aplan_left_out(self, name: str, *, max_active: int | None = None) -> BackfillPlan:
        """Exactly the slots that the circuit breaker left out and that nobody has run since, oldest first.
        While a backfill of the schedule is under way, none: it may be running them."""
        store = await self._store()
        now = await store.now(at=self._stamp)
        versions = await _versions(store, name)
        calendars = await calendars_of(store, {each.schedule.trigger for each in versions})
        rows = await ledger(store, name, start=_EVER, most=_MOST_ROWS)
        slots = left_out(versions, rows, calendars)
        for each in await store.backfills.all(limit=_PAGE, schedule=name):
            if each.state is BackfillState.ACTIVE:
                why = f"backfill {each.id} is under way"
                slots = [PlannedSlot(slot=planned.slot, run=False, why=why) for planned in slots]
        return BackfillPlan(
            schedule=name,
            start=slots[0].slot.slot_at if slots else now,
            end=slots[-1].slot.slot_at + _INSTANT if slots else now,
            max_active=_at_once(max_active, versions[-1]),
            reverse=False,
            reprocess=Reprocess.NONE,
            slots=tuple(slots),
        )

    @order("backfills.start", about=lambda plan: plan.schedule, result=lambda begun: {"backfill": begun.id})
    async def astart(self, plan: BackfillPlan) -> Backfill:
        """Put a plan on record: from then on schedulers make its jobs. A slot that was run between the
        planning and its turn is left alone."""
        return await self._begun(plan)

    @order("backfills.go_on", about=lambda plan: plan.schedule, result=lambda begun: {"backfill": begun.id})
    async def ago_on(self, plan: BackfillPlan) -> Backfill:
        """The same for a plan of the slots that the circuit breaker left out."""
        return await self._begun(plan)

    @order("backfills.cancel", result=lambda done: {"cancelled": done})
    async def acancel(self, backfill_id: int) -> bool:
        """Make no more jobs of it; False when it had ended already."""
        await self.aget(backfill_id)
        store = await self._store()
        return await carried_out(store.backfills.cancel(backfill_id, author=self._author, at=self._stamp))

    async def aget(self, backfill_id: int) -> Backfill:
        """One backfill, and how far it is."""
        found = await (await self._store()).backfills.get(backfill_id)
        if found is None:
            raise NotFound("backfill", backfill_id)
        return found

    async def anewest(self, *, limit: int = 50) -> list[Backfill]:
        """Newest first."""
        return await (await self._store()).backfills.all(limit=limit)

    async def _begun(self, plan: BackfillPlan) -> Backfill:
        new = NewBackfill(
            schedule=plan.schedule,
            start=plan.start,
            end=plan.end,
            slots=tuple(each.slot for each in plan.to_run),
            author=self._author,
            max_active=plan.max_active,
            reverse=plan.reverse,
            reprocess=plan.reprocess,
        )
        store = await self._store()
        backfill_id = await carried_out(
            store.backfills.add(new, at=self._stamp), said=lambda backfill_id: {"backfill": backfill_id}
        )
        return await self.aget(backfill_id)

    plan = blocking(aplan)
    plan_left_out = blocking(aplan_left_out)
    start = blocking(astart)
    go_on = blocking(ago_on)
    cancel = blocking(acancel)
    get = blocking(aget)
    newest = blocking(anewest)


async def _versions(store: Store, name: str) -> list[ScheduleVersion]:
    versions = await store.schedules.versions(name)
    if not versions:
        raise NotFound("schedule", name)
    return versions


async def _states(store: Store, job_ids: list[int], at: Stamp) -> dict[int, JobState]:
    found: dict[int, JobState] = {}
    for first in range(0, len(job_ids), _PAGE):
        found |= await store.jobs.states(job_ids[first : first + _PAGE], at=at)
    return found


class BackfillView(Value, frozen=True, kw_only=True):
    """How far a backfill is."""

    id: int
    schedule: str
    start: datetime = msgspec.field(name="from")
    end: datetime = msgspec.field(name="to")
    state: BackfillState
    slots: int
    made: int
    left: int
    live: int
    max_active: int
    reverse: bool
    reprocess: Reprocess
    author: str
    created_at: datetime
    ended_at: datetime | None
    cancelled_by: str | None

    @classmethod
    def of(cls, backfill: Backfill) -> Self:
        """Of a backfill: its fields, in the order in which they are read."""
        return cls(**msgspec.structs.asdict(backfill))


class PlannedSlotView(Value, frozen=True, kw_only=True):
    """One slot of a plan."""

    slot_at: datetime
    version: int
    run: bool
    why: str
    job_id: int | None

    @classmethod
    def of(cls, planned: PlannedSlot) -> Self:
        """Of a slot; `job_id` is the job that it made before."""
        slot = planned.slot
        return cls(
            slot_at=slot.slot_at, version=slot.version, run=planned.run, why=planned.why, job_id=slot.seen
        )


def _check_range(start: datetime, end: datetime, now: datetime) -> None:
    for name, moment in (("from", start), ("to", end)):
        if moment.tzinfo is None:
            raise InvalidArgument(name, moment.isoformat(), "a moment with its offset")
    if end <= start:
        raise InvalidArgument("to", end.isoformat(), f"a moment after from, {start.isoformat()}")
    if end > now:
        raise InvalidArgument(
            "to", end.isoformat(), f"a moment that is past (the database's now is {now.isoformat()})"
        )


def _at_once(asked: int | None, newest: ScheduleVersion) -> int:
    if asked is None:
        schedule = newest.schedule
        return schedule.overlap_limit if schedule.overlap is Overlap.ALLOW else 1
    if type(asked) is not int or not 1 <= asked <= MOST_AT_ONCE:
        raise InvalidArgument("max_active", asked, f"a whole number from 1 to {MOST_AT_ONCE}")
    return asked
