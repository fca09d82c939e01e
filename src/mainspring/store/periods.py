"""Periods: the time that the job of a slot covers, from the records of the store."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from mainspring.errors import InvalidArgument
from mainspring.model.job import Job
from mainspring.model.schedule import Period
from mainspring.store.store import Store
from mainspring.triggers import codec
from mainspring.triggers.calendars import decode_calendar
from mainspring.triggers.slots import period


async def slot_period(store: Store, job: Job) -> Period | None:
    """The period of a job; None for a job without a slot."""
    if job.schedule_id is None or job.slot_at is None:
        return None
    return await period_of(store, job.schedule_id, job.slot_at)


async def period_of(store: Store, schedule_id: int, slot_at: datetime) -> Period:
    """The period of a slot, by the trigger that the schedule had then. Facts that are not on record any more,
    or that this version cannot read, are left out."""
    facts = await store.slots.facts(schedule_id, slot_at)
    unknown = Period(end=slot_at, since=facts.since, backfill=facts.backfilled)
    if facts.trigger is None:
        return unknown
    try:
        if codec.calendar_of(facts.trigger) is None:
            return _computed(facts.trigger, slot_at, facts.since, facts.backfilled)
        stored = await store.calendars.all()
        calendars = {(each.name, each.version): decode_calendar(each.definition) for each in stored}
        trigger = codec.decode(facts.trigger, calendars)
    except InvalidArgument:
        return unknown
    return period(trigger, slot_at, since=facts.since, backfill=facts.backfilled)


@lru_cache(maxsize=1024)
def _computed(trigger: str, slot_at: datetime, since: datetime | None, backfilled: bool) -> Period:
    # Cached, because after an outage thousands of schedules that share a trigger ask for the same period.
    return period(codec.decode(trigger), slot_at, since=since, backfill=backfilled)
