"""Explains what a schedule did, or did not do, at a moment, from records that were read before.

A row of the ledger gives the reason. Without a row, the versions of the schedule show what should have
happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from mainspring.admin.schedules.triggers import readable
from mainspring.admin.views import iso, to_json
from mainspring.admin.why.answer import Answer, Because, answer
from mainspring.admin.words import in_words, length, moment
from mainspring.model.job import Job, JobState
from mainspring.model.schedule import Change, Disposition, Schedule, ScheduleVersion, Skipped, Slot
from mainspring.model.value import Value
from mainspring.triggers.codec import Calendars
from mainspring.triggers.slots import latest
from mainspring.triggers.trigger import Trigger

_WRITTEN_WITHIN = timedelta(days=1)
"""A slot older than this without a row is not being written: its row was deleted."""
_JOB_NOW = {
    JobState.DELAYED: "is waiting for its time",
    JobState.READY: "is waiting for a worker",
    JobState.RUNNING: "is running",
    JobState.SUCCEEDED: "succeeded",
    JobState.DEAD: "is dead",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded by its handler",
}
_INSTANT = timedelta(microseconds=1)
_FAR_BACK = timedelta(days=3653)
"""Longer than the gap of almost any trigger: an exception is the 29th of February on one weekday."""


class Records(Value, frozen=True, kw_only=True):
    """The records about one schedule; `schedule` is None if it was deleted."""

    name: str
    now: datetime
    schedule: Schedule | None
    versions: tuple[ScheduleVersion, ...]
    rows: tuple[Slot, ...]
    """Newest first, back to the requested moment, or to the oldest row of the ledger."""
    schedulers: int
    """The number of live schedulers."""
    calendars: Calendars = msgspec.field(default_factory=dict)
    """The calendars that the triggers name."""

    def trigger(self, schedule: Schedule) -> Trigger | None:
        """The schedule's trigger, unless this version cannot read it."""
        return readable(schedule.trigger, self.calendars)


def why_slot(records: Records, at: datetime, job: Job | None = None) -> Answer:
    """The answer about the slot at this moment; `job` is the job that its ledger row names."""
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
    """The answer about the next slot."""
    schedule = records.schedule
    if schedule is None:
        return _deleted(records.versions[-1], None)
    following = schedule.next_at
    if following is not None and following <= schedule.active_from:
        # The spec is late, with slots from before this schedule, which do not belong to the schedule.
        trigger = records.trigger(schedule)
        following = None if trigger is None else trigger.next_after(schedule.active_from)
    if following is None:
        return answer(Because.ENDED, f"Its trigger, {in_words(schedule.trigger)}, names no further slot.")
    return why_slot(records, following)


def no_slot_yet(records: Records) -> Answer:
    """The answer if there is no last slot."""
    return answer(Because.NO_SLOT_YET, "The ledger has no slot of it yet.", schedule=records.name)


def decided(row: Slot, at: datetime, job: Job | None, version: ScheduleVersion | None) -> Answer:
    """The answer about the slot at `at`, which this row decides; `version` was in force at that decision."""
    schedule = None if version is None else version.schedule
    if row.disposition is Disposition.BACKFILLED and row.slot_at == at:
        return _backfilled(row, job)
    if row.reason is not None:
        return _skipped(row, row.reason, at, schedule)
    fired = f"fired as job {row.job_id}, which {_job_now(job)}"
    if row.slot_at == at:
        said = f"The slot of {moment(at)} {fired}."
    else:
        said = (
            f"The slot of {moment(at)} was coalesced into the slot of {moment(row.slot_at)}, which {fired}."
        )
    return answer(
        Because.FIRED if row.slot_at == at else Because.COALESCED,
        said + _late(row) + _noted(row),
        **_facts(row, at),
        job_id=row.job_id,
        job_state=None if job is None else job.state.value,
    )


def row_of(rows: Sequence[Slot], at: datetime) -> Slot | None:
    """The row of this slot, or else the earliest row that covers it."""
    covering = None
    for row in rows:
        if row.slot_at == at:
            return row
        if row.since is not None and row.since <= at < row.slot_at:
            covering = row
    return covering


def in_force(versions: Sequence[ScheduleVersion], at: datetime) -> ScheduleVersion | None:
    """The version of a slot at this moment. A change does not apply to the slot of its own instant."""
    return next((each for each in reversed(versions) if each.changed_at < at), None)


def when_decided(versions: Sequence[ScheduleVersion], row: Slot) -> ScheduleVersion | None:
    """The version that decided the row. A change first decides the due slots under the old version. A pause
    or a deletion skips the due slots itself."""
    for each in reversed(versions):
        decides_itself = each.change in (Change.CREATED, Change.PAUSED, Change.DELETED)
        if each.changed_at < row.decided_at or (decides_itself and each.changed_at == row.decided_at):
            return each
    return None


def unrecorded(records: Records, at: datetime) -> Schedule | None:
    """The schedule at this moment if no version is stored: the oldest known one."""
    if records.versions and records.versions[0].change is Change.CREATED:
        return None
    oldest = records.versions[0].schedule if records.versions else records.schedule
    return oldest if oldest is not None and oldest.active_from < at else None


def is_next(schedule: Schedule | None, at: datetime) -> bool:
    """Whether the store has this slot as the next one."""
    return schedule is not None and schedule.next_at == at


def names(trigger: Trigger, at: datetime) -> bool:
    """Whether the moment is an instant of the trigger."""
    return trigger.next_after(at - _INSTANT) == at


def neighbours(trigger: Trigger, at: datetime) -> list[datetime]:
    """The trigger's last instant before this moment, and its first instant after it."""
    first = trigger.next_after(at - _FAR_BACK)
    before = latest(trigger, first, at) if first is not None and first < at else None
    return [each for each in (before, trigger.next_after(at)) if each is not None]


def among_next(slot: datetime | None, trigger: Trigger | None, count: int, at: datetime) -> bool:
    """Whether `at` is one of the next `count` slots."""
    while count > 0 and slot is not None and slot < at:
        slot, count = None if trigger is None else trigger.next_after(slot), count - 1
    return count > 0 and slot == at


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
    """The answer about a past slot without a row in the ledger."""
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


def _not_kept(at: datetime, oldest: datetime | None) -> Answer:
    reach = f": the oldest row read is of {moment(oldest)}" if oldest is not None else ""
    return answer(
        Because.NOT_KEPT,
        f"The ledger has no row for the slot of {moment(at)}{reach}.",
        at=iso(at),
        oldest_row_at=iso(oldest),
    )


def _overtaken(records: Records, at: datetime) -> Answer:
    """The answer if the schedule was changed or deleted before a scheduler fired the slot."""
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


def _backfilled(row: Slot, job: Job | None) -> Answer:
    at_the_time = "" if row.reason is None else f" At the time it was skipped: {row.reason}."
    return answer(
        Because.BACKFILLED,
        f"The slot of {moment(row.slot_at)} was run at {moment(row.decided_at)} ({row.note}) as job "
        f"{row.job_id}, which {_job_now(job)}.{at_the_time}",
        **_facts(row, row.slot_at),
        job_id=row.job_id,
        job_state=None if job is None else job.state.value,
        reason=None if row.reason is None else row.reason.value,
    )


def _job_now(job: Job | None) -> str:
    if job is None:
        return "is no longer on record"
    ended = f" at {moment(job.finished_at)}" if job.finished_at is not None else ""
    return _JOB_NOW[job.state] + ended


def _facts(row: Slot, at: datetime) -> dict[str, object]:
    return {
        "at": iso(at),
        "slot_at": iso(row.slot_at),
        "since": iso(row.since),
        "decided_at": iso(row.decided_at),
        "note": row.note,
    }


def _skipped(row: Slot, reason: Skipped, at: datetime, schedule: Schedule | None) -> Answer:
    together = ""
    if row.since is not None:
        together = f" with those from {moment(row.since)} to {moment(row.slot_at)}"
    return answer(
        Because.SKIPPED,
        f"The slot of {moment(at)} was skipped{together}: {_reason(row, reason, schedule)}.{_noted(row)}",
        **_facts(row, at),
        reason=reason.value,
        blocker=row.blocker,
        **_pause(row, schedule),
    )


def _reason(row: Slot, reason: Skipped, schedule: Schedule | None) -> str:
    match reason:
        case Skipped.MISFIRE:
            return f"misfire, nobody could fire it until {moment(row.decided_at)}{_asked(schedule)}"
        case Skipped.TOO_LATE:
            return f"too_late, nobody could fire it until {moment(row.decided_at)}{_window(schedule)}"
        case Skipped.OVERLAP:
            return f"overlap, job {row.blocker} was still live"
        case Skipped.PAUSED:
            return _paused(schedule)
        case Skipped.CALENDAR:
            return "calendar, it leaves this day out"
        case Skipped.BREAKER:
            return (
                f"breaker, too many jobs of its schedule were live at {moment(row.decided_at)}; "
                "`mainspring schedules go-on` runs what was left out"
            )
        case Skipped.REQUESTED:
            return "requested, somebody asked for it to be skipped"
        case Skipped.EXHAUSTED:
            limit = "" if schedule is None or schedule.max_fires is None else f"{schedule.max_fires} "
            return f"exhausted, all its {limit}fires were used up"
        case Skipped.DELETED:
            return "deleted, it was due and not yet fired when its schedule was deleted"
        case _:
            assert_never(reason)


def _asked(schedule: Schedule | None) -> str:
    return "" if schedule is None else f" (misfire {schedule.misfire})"


def _window(schedule: Schedule | None) -> str:
    if schedule is None or schedule.catch_up is None:
        return ""
    return f", and it was older than the schedule's catch_up of {length(schedule.catch_up)} by then"


def _paused(schedule: Schedule | None) -> str:
    if schedule is None or schedule.paused_at is None:
        return "it was paused"
    note = f": {schedule.pause_note}" if schedule.pause_note else ""
    return f"it was paused by {schedule.paused_by} at {moment(schedule.paused_at)}{note}"


def _noted(row: Slot) -> str:
    return f" Note: {row.note}." if row.note else ""


def _pause(row: Slot, schedule: Schedule | None) -> dict[str, object]:
    if row.reason is not Skipped.PAUSED or schedule is None:
        return {}
    return {
        "paused_at": iso(schedule.paused_at),
        "paused_by": schedule.paused_by,
        "pause_note": schedule.pause_note,
    }


def _late(row: Slot) -> str:
    late = row.decided_at - row.slot_at
    return f" It was fired {length(late)} late." if late.total_seconds() >= 1 else ""
