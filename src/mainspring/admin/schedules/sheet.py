"""Everything that the page of one schedule shows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from mainspring.admin.schedules.edited import NO_BUSINESS_DAY
from mainspring.admin.schedules.policy_words import Policy, policies
from mainspring.admin.schedules.slot_strip import Tile, strip
from mainspring.admin.schedules.versions import Step, steps
from mainspring.admin.simulation.nights import Night, nights, zones_of
from mainspring.admin.why.asking import LastAndNext, Why
from mainspring.admin.words import in_words
from mainspring.clock import Clock
from mainspring.errors import NotFound
from mainspring.model.schedule import Backfill, BackfillState, Schedule
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.triggers.misfire import LATE
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.slots import upcoming_slots
from mainspring.triggers.trigger import Trigger

TILES, FIRES, VERSIONS, BACKFILLS, NEWEST_BACKFILLS = 60, 10, 20, 100, 5
_AHEAD = timedelta(days=60)


class NextFire(Value, frozen=True, kw_only=True):
    """A slot to come."""

    at: datetime
    local: str
    note: str | None
    skipped: bool
    """There will be no job of it."""


class ScheduleSheet(Value, frozen=True, kw_only=True):
    """One schedule as it stands."""

    schedule: Schedule
    now: datetime
    trigger: str
    """In words."""
    tz: str
    overdue: timedelta | None
    """How late its next slot is, when it is late."""
    tiles: tuple[Tile, ...]
    older: datetime | None
    """Slots before this moment are on the page before; None when there are none."""
    newer: bool
    """This is not the newest page."""
    fires: tuple[NextFire, ...] | None
    """None when this version cannot read the trigger."""
    nights: tuple[Night, ...]
    """In its zones, in the next weeks."""
    policies: tuple[Policy, ...]
    history: tuple[Step, ...]
    """Newest first."""
    backfills: tuple[Backfill, ...]
    why: LastAndNext


async def sheet(store: Store, clock: Clock, name: str, *, before: datetime | None = None) -> ScheduleSheet:
    """One schedule, with a page of its slots: the newest, or those before a moment."""
    slots = await store.slots.of(name, limit=TILES + 1, before=before)
    why = Why(store, clock)
    records = await why.records(name, rows=slots if before is None else None)
    schedule, now = records.schedule, records.now
    if schedule is None:
        raise NotFound("schedule", name)
    shown = slots[:TILES]
    jobs = sorted({each.job_id for each in shown if each.job_id is not None})
    states = await store.jobs.states(jobs, at=clock.stamp()) if jobs else {}
    trigger = records.trigger(schedule)
    return ScheduleSheet(
        schedule=schedule,
        now=now,
        trigger=in_words(schedule.trigger),
        tz=zone_of(trigger),
        overdue=overdue(schedule, now),
        tiles=strip(shown, states),
        older=shown[-1].slot_at if len(slots) > TILES else None,
        newer=before is not None,
        fires=None if trigger is None else next_fires(schedule, trigger, now),
        nights=() if trigger is None else nights(zones_of(trigger) - {"UTC"}, now, now + _AHEAD),
        policies=policies(schedule, trigger),
        history=tuple(reversed(steps(records.versions)))[:VERSIONS],
        backfills=_shown(await store.backfills.all(limit=BACKFILLS, schedule=name)),
        why=await why.last_and_next(records),
    )


def zone_of(trigger: Trigger | None) -> str:
    """The zone in which its next fires are shown."""
    found = sorted(zones_of(trigger)) if trigger is not None else []
    return found[0] if found else "UTC"


def overdue(schedule: Schedule, now: datetime) -> timedelta | None:
    """How late a slot is that nobody has dealt with."""
    if schedule.next_at is None or schedule.paused_at is not None:
        return None
    late = now - schedule.next_at
    return late if late > LATE and schedule.next_at > schedule.active_from else None


def next_fires(
    schedule: Schedule, trigger: Trigger, now: datetime, count: int = FIRES
) -> tuple[NextFire, ...]:
    """Its next slots, those that will be skipped among them."""
    found = []
    for place, fire in enumerate(upcoming_slots(trigger, now, count, zone_of(trigger))):
        holiday = is_skipped(trigger, fire.at)
        asked = place < schedule.skips
        used_up = schedule.fires_left is not None and place - schedule.skips >= schedule.fires_left
        paused = schedule.paused_at is not None
        why = (
            NO_BUSINESS_DAY
            if holiday
            else "skipped: paused"
            if paused
            else "skipped: requested"
            if asked
            else "skipped: no fires left"
            if used_up
            else None
        )
        found.append(
            NextFire(
                at=fire.at,
                local=f"{fire.local:%a %d %b %H:%M:%S %Z}",
                note=why or fire.note,
                skipped=why is not None,
            )
        )
    return tuple(found)


def _shown(backfills: Sequence[Backfill]) -> tuple[Backfill, ...]:
    """The newest few, and whatever is under way."""
    newest = backfills[:NEWEST_BACKFILLS]
    return tuple(each for each in backfills if each in newest or each.state is BackfillState.ACTIVE)
