"""What is on record about one schedule, and how to find a moment in it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from mainspring.admin.schedules.triggers import readable
from mainspring.model.schedule import Change, Schedule, ScheduleVersion, Slot
from mainspring.model.value import Value
from mainspring.triggers.codec import Calendars
from mainspring.triggers.slots import latest
from mainspring.triggers.trigger import Trigger

_INSTANT = timedelta(microseconds=1)
_FAR_BACK = timedelta(days=3653)
"""Longer than any trigger stays silent, but for a 29th of February on one weekday."""


class Records(Value, frozen=True, kw_only=True):
    """What is on record about one schedule; `schedule` is None when it was deleted."""

    name: str
    now: datetime
    schedule: Schedule | None
    versions: tuple[ScheduleVersion, ...]
    rows: tuple[Slot, ...]
    """Newest first, back to the moment asked about where the ledger reaches that far."""
    schedulers: int
    """How many are alive."""
    calendars: Calendars = msgspec.field(default_factory=dict)
    """Those that the triggers name."""

    def trigger(self, schedule: Schedule) -> Trigger | None:
        """The schedule's trigger, unless this version cannot read it."""
        return readable(schedule.trigger, self.calendars)


def row_of(rows: Sequence[Slot], at: datetime) -> Slot | None:
    """The row of this slot, or else the earliest that stands for it too."""
    covering = None
    for row in rows:
        if row.slot_at == at:
            return row
        if row.since is not None and row.since <= at < row.slot_at:
            covering = row
    return covering


def in_force(versions: Sequence[ScheduleVersion], at: datetime) -> ScheduleVersion | None:
    """The version a slot at this moment belongs to: a change does not touch the slot of its own instant."""
    return next((each for each in reversed(versions) if each.changed_at < at), None)


def when_decided(versions: Sequence[ScheduleVersion], row: Slot) -> ScheduleVersion | None:
    """The version that decided the row: a change first decides what was due under the version it ends, but
    what a pause or a deletion finds is skipped for its sake."""
    for each in reversed(versions):
        decides_itself = each.change in (Change.CREATED, Change.PAUSED, Change.DELETED)
        if each.changed_at < row.decided_at or (decides_itself and each.changed_at == row.decided_at):
            return each
    return None


def unrecorded(records: Records, at: datetime) -> Schedule | None:
    """Schedules older than the keeping of versions: the oldest that is known stands for those before it."""
    if records.versions and records.versions[0].change is Change.CREATED:
        return None
    oldest = records.versions[0].schedule if records.versions else records.schedule
    return oldest if oldest is not None and oldest.active_from < at else None


def is_next(schedule: Schedule | None, at: datetime) -> bool:
    """Whether the store itself says that this is the next slot."""
    return schedule is not None and schedule.next_at == at


def names(trigger: Trigger, at: datetime) -> bool:
    """Whether the moment is one of the trigger's instants."""
    return trigger.next_after(at - _INSTANT) == at


def neighbours(trigger: Trigger, at: datetime) -> list[datetime]:
    """The trigger's last instant before a moment that is none of them, and its first after it."""
    first = trigger.next_after(at - _FAR_BACK)
    before = latest(trigger, first, at) if first is not None and first < at else None
    return [each for each in (before, trigger.next_after(at)) if each is not None]


def among_next(slot: datetime | None, trigger: Trigger | None, count: int, at: datetime) -> bool:
    """Whether `at` is one of the next `count` slots."""
    while count > 0 and slot is not None and slot < at:
        slot, count = None if trigger is None else trigger.next_after(slot), count - 1
    return count > 0 and slot == at
