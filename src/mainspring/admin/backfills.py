"""Backfills: schedulers run slots of the past on request. Policies and pauses do not apply to a backfill.

`Backfills` reads the records. Pure functions decide which slots run, and why.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

import msgspec

from mainspring.admin.order import Noun, blocking, carried_out, order
from mainspring.admin.schedules.triggers import calendars_of
from mainspring.admin.slot_verification.verifier import ledger
from mainspring.admin.words import moment
from mainspring.errors import InvalidArgument, NotFound
from mainspring.model.job import LIVE_STATES, JobState
from mainspring.model.schedule import (
    Backfill,
    BackfillSlot,
    BackfillState,
    Change,
    NewBackfill,
    Overlap,
    Reprocess,
    ScheduleVersion,
    Skipped,
    Slot,
)
from mainspring.model.value import Value
from mainspring.store.database import Stamp
from mainspring.store.store import Store
from mainspring.triggers.codec import Calendars, decode
from mainspring.triggers.rolled import is_skipped

MOST_AT_ONCE = 1000
_PAGE = 1000
_MOST_ROWS = 1_000_000
_LEDGER_START = datetime(1970, 1, 1, tzinfo=UTC)
MOST_SLOTS = 100_000
"""The most slots of one backfill: a year of a schedule that fires every six minutes."""
_INSTANT = timedelta(microseconds=1)
_EVER, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_FAILED = (JobState.DEAD, JobState.CANCELLED)
_ENDED = {
    JobState.SUCCEEDED: "succeeded",
    JobState.DEAD: "died",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded",
}


class PlannedSlot(Value, frozen=True, kw_only=True):
    """One slot of the range: whether the backfill runs it, and the reason."""

    slot: BackfillSlot
    run: bool
    why: str


class BackfillPlan(Value, frozen=True, kw_only=True):
    """The slots of a backfill, in the order in which they would run."""

    schedule: str
    start: datetime
    end: datetime
    max_active: int
    reverse: bool
    reprocess: Reprocess
    slots: tuple[PlannedSlot, ...]

    @property
    def to_run(self) -> tuple[PlannedSlot, ...]:
        """The slots that the backfill runs."""
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
        """Exactly the slots that the circuit breaker dropped and that have no job yet, oldest first. The plan
        runs no slot while another backfill of the schedule is active, because that one may run them."""
        store = await self._store()
        now = await store.now(at=self._stamp)
        versions = await _versions(store, name)
        calendars = await calendars_of(store, {each.schedule.trigger for each in versions})
        rows = await ledger(store, name, start=_LEDGER_START, most=_MOST_ROWS)
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
        """Store a plan. Schedulers then create its jobs. A slot that got a job after the planning is not run
        again."""
        return await self._begun(plan)

    @order("backfills.go_on", about=lambda plan: plan.schedule, result=lambda begun: {"backfill": begun.id})
    async def ago_on(self, plan: BackfillPlan) -> Backfill:
        """Store a plan of the slots that the circuit breaker dropped."""
        return await self._begun(plan)

    @order("backfills.cancel", result=lambda done: {"cancelled": done})
    async def acancel(self, backfill_id: int) -> bool:
        """Create no more jobs of a backfill. False if it had already ended."""
        await self.aget(backfill_id)
        store = await self._store()
        return await carried_out(store.backfills.cancel(backfill_id, author=self._author, at=self._stamp))

    async def aget(self, backfill_id: int) -> Backfill:
        """One backfill with its progress."""
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


class BackfillView(Value, frozen=True, kw_only=True):
    """A backfill with its progress, as programs read it."""

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


def slots_between(
    versions: Sequence[ScheduleVersion], start: datetime, end: datetime, calendars: Calendars
) -> list[BackfillSlot]:
    """Slots from `start` on and before `end`. Each slot belongs to the version that was in force at the slot,
    or to the first version if there was none yet. Days that a calendar leaves out have no slots."""
    found: list[BackfillSlot] = []
    for slot in _walk(versions, start, end, calendars):
        if len(found) == MOST_SLOTS:
            expected = (
                f"an end at or before {moment(slot.slot_at)}: one backfill runs at most {MOST_SLOTS} slots"
            )
            raise InvalidArgument("to", end.isoformat(), expected)
        found.append(slot)
    return found


def left_out(
    versions: Sequence[ScheduleVersion], rows: Sequence[Slot], calendars: Calendars
) -> list[PlannedSlot]:
    """The slots that the circuit breaker dropped and that have no job yet, oldest first: at most
    `MOST_SLOTS`."""
    by_slot = {row.slot_at: row for row in rows}
    found: list[PlannedSlot] = []
    for row in sorted((row for row in rows if row.reason is Skipped.BREAKER), key=lambda row: row.slot_at):
        for slot in _walk(versions, row.since or row.slot_at, row.slot_at + _INSTANT, calendars):
            own = by_slot.get(slot.slot_at)
            if own is not None and (own.reason is not Skipped.BREAKER or own.job_id is not None):
                continue
            found.append(PlannedSlot(slot=slot, run=True, why="the circuit breaker left it out"))
            if len(found) == MOST_SLOTS:
                return found
    return found


def judge(
    slots: Sequence[BackfillSlot],
    rows: Sequence[Slot],
    states: Mapping[int, JobState],
    reprocess: Reprocess,
) -> list[PlannedSlot]:
    """Decide for each slot whether it runs, from the ledger and the states of its jobs."""
    by_slot = {row.slot_at: row for row in rows}
    covering = sorted((row for row in rows if row.since is not None), key=lambda row: row.slot_at)
    return [_judged(slot, by_slot.get(slot.slot_at), covering, states, reprocess) for slot in slots]


def _check_range(start: datetime, end: datetime, now: datetime) -> None:
    for name, instant in (("from", start), ("to", end)):
        if instant.tzinfo is None:
            raise InvalidArgument(name, instant.isoformat(), "a moment with its offset")
    if end <= start:
        raise InvalidArgument("to", end.isoformat(), f"a moment after from, {start.isoformat()}")
    if end > now:
        raise InvalidArgument(
            "to", end.isoformat(), f"a moment that is past (the database's now is {now.isoformat()})"
        )


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


def _at_once(asked: int | None, newest: ScheduleVersion) -> int:
    if asked is None:
        schedule = newest.schedule
        return schedule.overlap_limit if schedule.overlap is Overlap.ALLOW else 1
    if type(asked) is not int or not 1 <= asked <= MOST_AT_ONCE:
        raise InvalidArgument("max_active", asked, f"a whole number from 1 to {MOST_AT_ONCE}")
    return asked


def _walk(
    versions: Sequence[ScheduleVersion], start: datetime, end: datetime, calendars: Calendars
) -> Iterator[BackfillSlot]:
    for number, version in enumerate(versions):
        if version.change is Change.DELETED:
            continue
        after = version.changed_at if number else _EVER
        until = versions[number + 1].changed_at if number + 1 < len(versions) else _NEVER
        if until < start or after >= end:
            continue
        trigger = decode(version.schedule.trigger, calendars)
        slot = trigger.next_after(max(after, start - _INSTANT))
        while slot is not None and slot <= until and slot < end:
            if not is_skipped(trigger, slot):
                yield BackfillSlot(slot_at=slot, schedule_id=version.schedule.id, version=version.version)
            slot = trigger.next_after(slot)


def _judged(
    slot: BackfillSlot,
    row: Slot | None,
    covering: Sequence[Slot],
    states: Mapping[int, JobState],
    reprocess: Reprocess,
) -> PlannedSlot:
    if row is None:
        return PlannedSlot(slot=slot, run=True, why=_absent(slot, covering))
    if row.job_id is None:
        return PlannedSlot(slot=slot, run=True, why=f"it was skipped: {row.reason}")
    seen = BackfillSlot(
        slot_at=slot.slot_at, schedule_id=slot.schedule_id, version=slot.version, seen=row.job_id
    )
    state = states.get(row.job_id)
    how = "is no longer on record" if state is None else _ENDED.get(state, f"is {state}")
    wanted = reprocess is Reprocess.ALL or (reprocess is Reprocess.FAILED and state in _FAILED)
    return PlannedSlot(slot=seen, run=wanted and state not in LIVE_STATES, why=f"job {row.job_id} {how}")


def _absent(slot: BackfillSlot, covering: Sequence[Slot]) -> str:
    # The ranges of rows do not overlap, so only the first row after the slot can cover it.
    place = bisect_right(covering, slot.slot_at, key=lambda row: row.slot_at)
    row = covering[place] if place < len(covering) else None
    if row is None or row.since is None or row.since > slot.slot_at:
        return "the ledger has no row for it"
    verb = "coalesced into" if row.reason is None else "skipped with"
    return f"it was {verb} the slot of {moment(row.slot_at)}"
