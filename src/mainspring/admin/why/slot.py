"""Why a schedule did, or did not do, something at a moment: decided from records that were read before."""

from __future__ import annotations

from datetime import datetime, timedelta

from mainspring.admin.records import (
    Records,
    among_next,
    in_force,
    is_next,
    names,
    neighbours,
    row_of,
    unrecorded,
    when_decided,
)
from mainspring.admin.views import iso, to_json
from mainspring.admin.why.answer import Answer, Because, answer
from mainspring.admin.why.row import decided
from mainspring.admin.words import in_words, length, moment
from mainspring.model.job import Job
from mainspring.model.schedule import Change, Schedule, ScheduleVersion
from mainspring.triggers.trigger import Trigger

_WRITTEN_WITHIN = timedelta(days=1)
"""A slot this old that has no row is not being written: its row is gone."""


def why_slot(records: Records, at: datetime, job: Job | None = None) -> Answer:
    """What became, or becomes, of the slot at this moment; `job` is the one its ledger row names."""
    row = row_of(records.rows, at)
    if row is not None and row.slot_at == at:
        return decided(row, at, job, when_decided(records.versions, row))
    version = in_force(records.versions, at)
    if version is not None and version.change is Change.DELETED:
        return _deleted(version, at)
    then = version.schedule if version is not None else unrecorded(records, at)
    if then is None:
        return _not_created(records, at)
    trigger = records.trigger(then)
    if not is_next(records.schedule, at):
        if trigger is None:
            return _unreadable(then, at)
        if not names(trigger, at):
            return _not_a_slot(trigger, then, at)
    if row is not None:
        return decided(row, at, job, when_decided(records.versions, row))
    return _to_come(records, trigger, at) if at > records.now else _without_row(records, at)


def why_next(records: Records) -> Answer:
    """What becomes of the slot that comes next."""
    schedule = records.schedule
    if schedule is None:
        return _deleted(records.versions[-1], None)
    following = schedule.next_at
    if following is not None and following <= schedule.active_from:
        # The spec is late, with slots from before this schedule: they are not its business.
        trigger = records.trigger(schedule)
        following = None if trigger is None else trigger.next_after(schedule.active_from)
    if following is None:
        return answer(Because.ENDED, f"Its trigger, {in_words(schedule.trigger)}, names no further slot.")
    return why_slot(records, following)


def no_slot_yet(records: Records) -> Answer:
    """There is no last slot to tell about."""
    return answer(Because.NO_SLOT_YET, "The ledger has no slot of it yet.", schedule=records.name)


def _deleted(version: ScheduleVersion, at: datetime | None) -> Answer:
    sentence = f"It was deleted by {version.author} at {moment(version.changed_at)}."
    return answer(
        Because.DELETED,
        sentence,
        at=iso(at),
        deleted_at=iso(version.changed_at),
        author=version.author,
    )


def _not_created(records: Records, at: datetime) -> Answer:
    first = records.versions[0] if records.versions else None
    by = f" by {first.author}" if first is not None else ""
    known = [records.schedule.active_from] if records.schedule is not None else []
    created = first.changed_at if first is not None else known[0]
    return answer(
        Because.NOT_CREATED,
        f"{moment(at)} is before it was created ({moment(created)}{by}).",
        at=iso(at),
        created_at=iso(created),
        author=first.author if first is not None else None,
    )


def _unreadable(schedule: Schedule, at: datetime) -> Answer:
    return answer(
        Because.UNREADABLE,
        f"This version cannot read its trigger: {schedule.trigger}.",
        at=iso(at),
        trigger=schedule.trigger,
    )


def _not_a_slot(trigger: Trigger, schedule: Schedule, at: datetime) -> Answer:
    nearest = neighbours(trigger, at)
    listed = " and ".join(moment(each) for each in nearest)
    near = f"the nearest {'are' if len(nearest) > 1 else 'is'} {listed}" if nearest else "it has none near"
    return answer(
        Because.NOT_A_SLOT,
        f"{moment(at)} is not a slot of this schedule ({in_words(schedule.trigger)}): {near}.",
        at=iso(at),
        trigger=in_words(schedule.trigger),
        nearest=to_json(nearest),
    )


def _to_come(records: Records, trigger: Trigger | None, at: datetime) -> Answer:
    wait = length(at - records.now)
    hindrance = _hindrance(records, trigger, at)
    because = Because.TO_COME if hindrance is None else Because.WILL_BE_SKIPPED
    but = "" if hindrance is None else f" It will be skipped: {hindrance}."
    if records.schedulers == 0:
        but += " There is no live scheduler now."
    return answer(
        because,
        f"The slot of {moment(at)} is still to come, in {wait}.{but}",
        at=iso(at),
        seconds=(at - records.now).total_seconds(),
        hindrance=hindrance,
        live_schedulers=records.schedulers,
    )


def _hindrance(records: Records, trigger: Trigger | None, at: datetime) -> str | None:
    schedule = records.schedule
    if schedule is None:
        return None
    if schedule.paused_at is not None:
        note = f": {schedule.pause_note}" if schedule.pause_note else ""
        return f"paused by {schedule.paused_by} at {moment(schedule.paused_at)}{note}"
    if schedule.fires_left is not None and schedule.fires_left <= 0:
        return f"its {schedule.max_fires} fires are used up"
    if among_next(schedule.next_at, trigger, schedule.skips, at):
        return "somebody asked for it"
    return None


def _without_row(records: Records, at: datetime) -> Answer:
    """A slot that has come, and of which the ledger knows nothing."""
    schedule, rows = records.schedule, records.rows
    if rows and rows[-1].slot_at > at:
        return _not_kept(at, rows[-1].slot_at)
    if schedule is None or schedule.active_from >= at:
        return _overtaken(records, at)
    if schedule.next_at is not None and schedule.next_at <= at:
        return _due(records, at, "due but not fired")
    if records.now - at > _WRITTEN_WITHIN or (rows and rows[0].slot_at > at):
        return _not_kept(at, rows[-1].slot_at if rows else None)
    return _due(records, at, "opened, but its row is not yet written")


def _due(records: Records, at: datetime, what: str) -> Answer:
    late = length(records.now - at)
    alive = records.schedulers
    then = f"a live scheduler is about to ({alive} are)" if alive > 1 else "the live scheduler is about to"
    return answer(
        Because.BEING_FIRED if alive else Because.NO_SCHEDULER,
        f"The slot of {moment(at)} is {what}, {late} late: {then if alive else 'no live scheduler'}.",
        at=iso(at),
        late_seconds=(records.now - at).total_seconds(),
        live_schedulers=alive,
    )


def _overtaken(records: Records, at: datetime) -> Answer:
    """Its trigger was changed, or it was deleted, before anybody could fire the slot."""
    later = [each for each in records.versions if each.changed_at >= at]
    ended = next((each for each in later if each.change in (Change.CHANGED, Change.DELETED)), None)
    by = f" by {ended.author} at {moment(ended.changed_at)}" if ended is not None else ""
    how = ended.change if ended is not None else Change.CHANGED
    return answer(
        Because.CHANGED,
        f"The slot of {moment(at)} was due, but before it was fired the schedule was {how}{by}.",
        at=iso(at),
        version=ended.version if ended is not None else None,
        changed_at=iso(ended.changed_at) if ended is not None else None,
        author=ended.author if ended is not None else None,
    )


def _not_kept(at: datetime, oldest: datetime | None) -> Answer:
    reach = f": the oldest row read is of {moment(oldest)}" if oldest is not None else ""
    return answer(
        Because.NOT_KEPT,
        f"The ledger has no row for the slot of {moment(at)}{reach}.",
        at=iso(at),
        oldest_row_at=iso(oldest),
    )
