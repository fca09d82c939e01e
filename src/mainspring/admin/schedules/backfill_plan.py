"""Which slots of the past a backfill would run, and why: decided from records that were read before."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from mainspring.admin.words import moment
from mainspring.errors import InvalidArgument
from mainspring.model.job import LIVE_STATES, JobState
from mainspring.model.schedule import BackfillSlot, Change, Reprocess, ScheduleVersion, Skipped, Slot
from mainspring.model.value import Value
from mainspring.triggers.codec import Calendars, decode
from mainspring.triggers.rolled import is_skipped

MOST_SLOTS = 100_000
"""In one backfill: a year of a schedule that fires every six minutes."""
_INSTANT = timedelta(microseconds=1)
_EVER, _NEVER = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_FAILED = (JobState.DEAD, JobState.CANCELLED)


class PlannedSlot(Value, frozen=True, kw_only=True):
    """One slot of the range: whether it is to be run, and why or why not."""

    slot: BackfillSlot
    run: bool
    why: str


def slots_between(
    versions: Sequence[ScheduleVersion], start: datetime, end: datetime, calendars: Calendars
) -> list[BackfillSlot]:
    """Slots from `start` on and before `end`, each of the version in force when it came; before there was
    any, of the first. What a calendar takes away is no slot of anybody's."""
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
    """The slots that the circuit breaker left out and that nobody has run since, oldest first; the first
    `MOST_SLOTS` of them."""
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
    """What is to become of each slot, given the ledger and where the jobs it names stand."""
    by_slot = {row.slot_at: row for row in rows}
    covering = sorted((row for row in rows if row.since is not None), key=lambda row: row.slot_at)
    return [_judged(slot, by_slot.get(slot.slot_at), covering, states, reprocess) for slot in slots]


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


_ENDED = {
    JobState.SUCCEEDED: "succeeded",
    JobState.DEAD: "died",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded",
}


def _absent(slot: BackfillSlot, covering: Sequence[Slot]) -> str:
    # Rows stand for stretches that do not overlap, so only the first one after the slot can.
    place = bisect_right(covering, slot.slot_at, key=lambda row: row.slot_at)
    row = covering[place] if place < len(covering) else None
    if row is None or row.since is None or row.since > slot.slot_at:
        return "the ledger has no row for it"
    verb = "coalesced into" if row.reason is None else "skipped with"
    return f"it was {verb} the slot of {moment(row.slot_at)}"
