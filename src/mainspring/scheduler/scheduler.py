"""Turns due slots into jobs. It runs no user code and needs none: what falls due is in the store.

Any number of these run, and none leads. A spec is moved on by compare-and-set, a fire is taken by a
row lock inside one statement, and the ledger's key refuses a slot's second row; so a scheduler that
dies or freezes between two statements holds nothing, and another goes on from the fire's cursor.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from mainspring.clock import Clock
from mainspring.errors import UsageError
from mainspring.model.schedule import Chunk, Opening, Skipped, Spec
from mainspring.store.store import Store
from mainspring.telemetry.events import LagMeasured, SlotsDropped, SlotsFired, Telemetry, TriggerRefused
from mainspring.triggers.calendars import Calendar, decode_calendar
from mainspring.triggers.codec import calendar_of, decode
from mainspring.triggers.misfire import BREAKER, CATCH_UP_PAUSE, LATE, open_spec

BATCH = 500
"""Specs looked at in one pass: a bounded window, however many there are."""
FIRST_CHUNK = 250
"""Schedules fired by a pass's first statement; each next one takes twice as many, up to `chunk`. What has
been fired is run while the rest is fired, and a burst does not wait for its last schedule to begin."""
AFTER = timedelta(milliseconds=1)
BACKFILL_PAUSE = timedelta(milliseconds=100)
"""Between two looks whether jobs of a backfill have ended and others may follow."""


TELL_AGAIN = timedelta(minutes=1)
"""A schedule that drops one slot after another is reported as often as this."""


class Scheduler:
    """One pass: open what is due, fire what is open, then plan ahead while there is time."""

    name = "scheduler"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        telemetry: Telemetry,
        *,
        poll: timedelta,
        chunk: int,
        breaker: int = BREAKER,
    ) -> None:
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._poll = poll
        self._chunk = chunk
        self._breaker = breaker
        self._refused: set[str] = set()
        self._told: dict[tuple[str, Skipped], float] = {}
        """When it was last reported that a schedule drops slots."""
        self._unreadable: set[int] = set()
        """Specs that are left aside, so that they hold up no other; looked at again every `poll`."""
        self._look_again_at = 0.0
        self._calendars: dict[tuple[str, int], Calendar] = {}

    async def tick(self) -> timedelta:
        now, due = await self._due()
        openings = [opening for spec in due if (opening := self._open(spec, now)) is not None]
        opened = {opening.spec_id for opening in openings}
        self._unreadable |= {spec.id for spec in due} - opened
        self._telemetry.emit(
            LagMeasured(
                # Earliest first, so the first is the latest.
                lag=next((now - spec.next_at for spec in due if spec.id in opened), timedelta()),
                due=len(openings),
            )
        )
        if openings:
            await self._store.slots.open_firings(openings, at=self._clock.stamp())
        await self._fire()
        released = await self._store.slots.release_held(at=self._clock.stamp())
        backfills = await self._store.backfills.advance(at=self._clock.stamp())
        await self._plan()
        if len(due) == BATCH:
            return timedelta()
        if released or any(spec.one_by_one and now - spec.next_at > LATE for spec in due):
            return CATCH_UP_PAUSE
        if backfills.active:
            return BACKFILL_PAUSE
        wait = await self._store.slots.next_due(beside=sorted(self._unreadable), at=self._clock.stamp())
        return self._poll if wait is None else min(wait + AFTER, self._poll)

    async def _due(self) -> tuple[datetime, list[Spec]]:
        """The store's now, and what is due by it, but for what we could not read a moment ago."""
        if self._clock.monotonic() >= self._look_again_at:
            self._unreadable.clear()
            self._look_again_at = self._clock.monotonic() + self._poll.total_seconds()
        now, due = await self._store.slots.due_specs(
            limit=BATCH, beside=sorted(self._unreadable), at=self._clock.stamp()
        )
        await self._learn_calendars(due)
        return now, due

    def _open(self, spec: Spec, now: datetime) -> Opening | None:
        try:
            trigger = decode(spec.trigger, self._calendars)
            return open_spec(spec, trigger, now)
        except UsageError as error:
            # Written by a newer version, perhaps: its schedules wait for a scheduler that can.
            if spec.trigger not in self._refused:  # reported once, not with every pass
                self._refused.add(spec.trigger)
                self._telemetry.emit(TriggerRefused(trigger=spec.trigger, reason=str(error)))
            return None

    async def _fire(self) -> None:
        limit = min(FIRST_CHUNK, self._chunk)
        while chunk := await self._store.slots.fire(
            limit=limit, breaker=self._breaker, at=self._clock.stamp()
        ):
            limit = min(2 * limit, self._chunk)
            if chunk.fired or chunk.skipped:
                self._telemetry.emit(
                    SlotsFired(
                        slot_at=chunk.slot_at, fired=chunk.fired, skipped=chunk.skipped, late=chunk.late
                    )
                )
            if chunk.dropped:
                self._tell_dropped(chunk)

    def _tell_dropped(self, chunk: Chunk) -> None:
        now = self._clock.monotonic()
        self._told = {key: at for key, at in self._told.items() if now - at < TELL_AGAIN.total_seconds()}
        for reason in (Skipped.TOO_LATE, Skipped.BREAKER):
            names = [drop.schedule for drop in chunk.dropped if drop.reason is reason]
            if not names:
                continue
            told = tuple(name for name in names if (name, reason) not in self._told)
            self._told |= {(name, reason): now for name in told}
            self._telemetry.emit(
                SlotsDropped(
                    slot_at=chunk.slot_at, since=chunk.since, reason=reason, schedules=len(names), told=told
                )
            )

    async def _plan(self) -> None:
        unplanned = await self._store.slots.unplanned_specs(limit=BATCH)
        await self._learn_calendars(unplanned)
        planned = [plan for spec in unplanned if (plan := self._planned(spec)) is not None]
        if planned:
            await self._store.slots.plan_specs(planned)

    def _planned(self, spec: Spec) -> Spec | None:
        try:
            following_at = decode(spec.trigger, self._calendars).next_after(spec.next_at)
        except UsageError:
            return None  # reported when it falls due
        return msgspec.structs.replace(spec, following_at=following_at, planned=True)

    async def _learn_calendars(self, specs: list[Spec]) -> None:
        """Read the stored calendars when a spec names one we have not seen. A version never changes."""
        needed = {name for spec in specs if (name := _calendar_of(spec)) is not None}
        if not needed <= self._calendars.keys():
            stored = await self._store.calendars.all()
            self._calendars = {(c.name, c.version): decode_calendar(c.definition) for c in stored}


def _calendar_of(spec: Spec) -> tuple[str, int] | None:
    try:
        return calendar_of(spec.trigger)
    except UsageError:
        return None  # reported when it falls due
