"""What a slot's job stands for, from what is on record."""

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
    """Of a job on record; None for one put in by hand."""
    if job.schedule_id is None or job.slot_at is None:
        return None
    return await period_of(store, job.schedule_id, job.slot_at)


async def period_of(store: Store, schedule_id: int, slot_at: datetime) -> Period:
    """Of the slot of a schedule, by the trigger that it had then. What is not on record any more, or cannot
    be read by this version, is left out."""
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
    # After an outage, thousands of schedules that share a trigger ask the same.
    return period(codec.decode(trigger), slot_at, since=since, backfill=backfilled)
