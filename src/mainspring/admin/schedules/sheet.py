"""The content of the pages about schedules: one schedule, with its policies in sentences and its slots as
tiles; and the list of schedules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import assert_never

from msgspec.structs import replace

from mainspring.admin.schedules.draft import NO_BUSINESS_DAY
from mainspring.admin.schedules.versions import Step, steps
from mainspring.admin.simulation.heat_map import Night, nights, zones_of
from mainspring.admin.why.asking import LastAndNext, Why
from mainspring.admin.words import in_words, length, moment
from mainspring.clock import Clock
from mainspring.duration import format_duration
from mainspring.errors import NotFound
from mainspring.model.job import JobState
from mainspring.model.schedule import (
    Backfill,
    BackfillState,
    Disposition,
    Misfire,
    Only,
    Overlap,
    Schedule,
    ScheduleCounts,
    ScheduleFilter,
    ScheduleRow,
    Slot,
)
from mainspring.model.value import Value
from mainspring.store.store import Store
from mainspring.tasks.schedule import options_of
from mainspring.triggers.misfire import LATE
from mainspring.triggers.rolled import is_skipped
from mainspring.triggers.slots import upcoming_slots
from mainspring.triggers.trigger import Trigger

TILES, FIRES, VERSIONS, BACKFILLS, NEWEST_BACKFILLS = 60, 10, 20, 100, 5
_AHEAD = timedelta(days=60)
_GAP = {
    "shift": "A local time that the clocks skip is moved to the first one after it.",
    "skip": "A local time that the clocks skip has no slot.",
}
_FOLD = {
    "first": "A local time that comes twice has its slot the first time.",
    "second": "A local time that comes twice has its slot the second time.",
    "both": "A local time that comes twice has a slot each time.",
}
_HOLIDAY = {
    "skip": "is left out",
    "next": "moves to the next one",
    "previous": "moves to the one before",
}
LATE_START = timedelta(seconds=5)
"""From this delay on a tile shows that its slot was decided late."""
_STATES = {
    JobState.DELAYED: ("delayed", "its job waits for its time"),
    JobState.READY: ("ready", "its job waits for a worker"),
    JobState.RUNNING: ("running", "its job is running"),
    JobState.SUCCEEDED: ("succeeded", "its job succeeded"),
    JobState.DEAD: ("dead", "its job is dead"),
    JobState.CANCELLED: ("cancelled", "its job was cancelled"),
    JobState.DISCARDED: ("discarded", "its job was discarded by its handler"),
}
_REASONS = {
    "misfire": "nobody could fire it in time",
    "too_late": "nobody could fire it before it was older than catch_up",
    "overlap": "the job before it was still live",
    "paused": "the schedule was paused",
    "calendar": "its calendar leaves this day out",
    "breaker": "too many jobs of the schedule were live",
    "requested": "somebody asked for it to be skipped",
    "exhausted": "its fires were used up",
    "deleted": "its schedule was deleted",
}
OVERDUE_SHOWN = 20


class NextFire(Value, frozen=True, kw_only=True):
    """A future slot."""

    at: datetime
    local: str
    note: str | None
    skipped: bool
    """The slot will get no job."""


class Policy(Value, frozen=True, kw_only=True):
    """One policy of a schedule."""

    name: str
    value: str
    sentence: str


class Tile(Value, frozen=True, kw_only=True):
    """One row of the ledger."""

    slot_at: datetime
    state: str
    """The state of its job; `skipped` if it has no job, `gone` if its job is no longer stored."""
    words: str
    """The result in two or three words."""
    sentence: str
    disposition: str
    reason: str | None
    job_id: int | None
    blocker: int | None
    since: datetime | None
    """The row also covers the slots from this moment on."""
    late: timedelta | None
    note: str | None
    decided_at: datetime


class ScheduleSheet(Value, frozen=True, kw_only=True):
    """The content of the page of one schedule."""

    schedule: Schedule
    now: datetime
    trigger: str
    """The trigger in words."""
    tz: str
    overdue: timedelta | None
    """How late its next slot is; None if it is not late."""
    tiles: tuple[Tile, ...]
    older: datetime | None
    """Slots before this moment are on the next older page; None if there are none."""
    newer: bool
    """True if there is a newer page."""
    fires: tuple[NextFire, ...] | None
    """None if this version cannot read the trigger."""
    nights: tuple[Night, ...]
    """Clock changes in its time zones, in the next weeks."""
    policies: tuple[Policy, ...]
    history: tuple[Step, ...]
    """Newest first."""
    backfills: tuple[Backfill, ...]
    why: LastAndNext


class ListedSchedule(Value, frozen=True, kw_only=True):
    """One row of the list."""

    schedule: Schedule
    trigger: str
    """The trigger in words."""
    overdue: timedelta | None
    last: Tile | None
    """The tile of its newest slot."""


class ScheduleSummary(Value, frozen=True, kw_only=True):
    """The counts, and the first overdue schedules."""

    counts: ScheduleCounts
    overdue: tuple[ListedSchedule, ...]


class ScheduleList(Value, frozen=True, kw_only=True):
    """One page of the list."""

    rows: tuple[ListedSchedule, ...]
    next: str | None
    partial: bool


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


async def summary(store: Store, clock: Clock) -> ScheduleSummary:
    """Read the counts of schedules, and the first overdue schedules."""
    counts = await store.schedules.counts(late=LATE, at=clock.stamp())
    late = ScheduleFilter(only=Only.OVERDUE, limit=OVERDUE_SHOWN)
    return ScheduleSummary(
        counts=counts, overdue=(await listed(store, clock, late)).rows if counts.overdue else ()
    )


async def listed(store: Store, clock: Clock, which: ScheduleFilter) -> ScheduleList:
    """One page, by name."""
    stamp = clock.stamp()
    found = await store.schedules.page(replace(which, late=LATE), at=stamp)
    jobs = sorted({row.last.job_id for row in found.rows if row.last and row.last.job_id is not None})
    states = await store.jobs.states(jobs, at=stamp) if jobs else {}
    now = await store.now(at=stamp)
    return ScheduleList(rows=_listed(found.rows, states, now), next=found.next, partial=found.partial)


def zone_of(trigger: Trigger | None) -> str:
    """The time zone in which its next fires are shown."""
    found = sorted(zones_of(trigger)) if trigger is not None else []
    return found[0] if found else "UTC"


def overdue(schedule: Schedule, now: datetime) -> timedelta | None:
    """How late the next slot without a decision is; None if it is not late."""
    if schedule.next_at is None or schedule.paused_at is not None:
        return None
    late = now - schedule.next_at
    return late if late > LATE and schedule.next_at > schedule.active_from else None


def next_fires(
    schedule: Schedule, trigger: Trigger, now: datetime, count: int = FIRES
) -> tuple[NextFire, ...]:
    """Its next slots, including slots that will be skipped."""
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


def policies(schedule: Schedule, trigger: Trigger | None) -> tuple[Policy, ...]:
    """The policies of a schedule, the most important first. Those of the trigger need a readable trigger."""
    found = [
        Policy(name="misfire", value=schedule.misfire.value, sentence=_misfire(schedule)),
        Policy(name="overlap", value=_overlap_value(schedule), sentence=_overlap(schedule)),
        Policy(name="attempts", value=str(schedule.max_attempts), sentence=_attempts(schedule)),
    ]
    if schedule.offset or schedule.jitter:
        found.append(Policy(name="delay", value=_delay_value(schedule), sentence=_delay(schedule)))
    if schedule.max_fires is not None:
        left = schedule.fires_left or 0
        found.append(
            Policy(
                name="max_fires",
                value=str(schedule.max_fires),
                sentence=f"It fires {schedule.max_fires:,} times in all; {left:,} are left.",
            )
        )
    if schedule.expires is not None:
        within = format_duration(schedule.expires)
        found.append(
            Policy(
                name="expires",
                value=within,
                sentence=f"A job that has not succeeded {within} after its slot is not tried any more.",
            )
        )
    return (*found, *([] if trigger is None else _of_trigger(trigger)))


def strip(slots: Sequence[Slot], states: Mapping[int, JobState]) -> tuple[Tile, ...]:
    """A tile for each row, oldest first; rows come newest first."""
    return tuple(_tile(slot, states) for slot in reversed(slots))


def legend(tiles: Sequence[Tile]) -> tuple[tuple[str, int], ...]:
    """The number of tiles of each state, the most frequent first."""
    counts: dict[str, int] = {}
    for each in tiles:
        counts[each.state] = counts.get(each.state, 0) + 1
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _shown(backfills: Sequence[Backfill]) -> tuple[Backfill, ...]:
    """The newest backfills, and all active ones."""
    newest = backfills[:NEWEST_BACKFILLS]
    return tuple(each for each in backfills if each in newest or each.state is BackfillState.ACTIVE)


def _listed(
    rows: Sequence[ScheduleRow], states: dict[int, JobState], now: datetime
) -> tuple[ListedSchedule, ...]:
    return tuple(
        ListedSchedule(
            schedule=row.schedule,
            trigger=in_words(row.schedule.trigger),
            overdue=overdue(row.schedule, now),
            last=None if row.last is None else strip([row.last], states)[0],
        )
        for row in rows
    )


def _misfire(schedule: Schedule) -> str:
    bound = (
        "" if schedule.catch_up is None else f", if it is no older than {format_duration(schedule.catch_up)}"
    )
    match schedule.misfire:
        case Misfire.LATEST:
            return f"Of slots that nobody could fire in time, the newest makes one job{bound}."
        case Misfire.ALL:
            return (
                f"Every slot that nobody could fire in time makes a job{bound}; "
                "these jobs wait for each other."
            )
        case Misfire.SKIP:
            return "Slots that nobody could fire in time make no job."
        case _:
            assert_never(schedule.misfire)


def _overlap_value(schedule: Schedule) -> str:
    limit = f" {schedule.overlap_limit}" if schedule.overlap is Overlap.ALLOW else ""
    return f"{schedule.overlap.value}{limit}"


def _overlap(schedule: Schedule) -> str:
    match schedule.overlap:
        case Overlap.SKIP:
            return "A slot that comes while its last job is live makes none."
        case Overlap.QUEUE_ONE:
            return "A slot that comes while its last job is live makes one that waits; no second one waits."
        case Overlap.QUEUE_ALL:
            return "A slot that comes while earlier jobs are live makes one that waits for them."
        case Overlap.ALLOW:
            return f"At most {schedule.overlap_limit} of its jobs are live at once."
        case Overlap.REPLACE:
            return "A slot that comes while its last job is live cancels that one."
        case _:
            assert_never(schedule.overlap)


def _attempts(schedule: Schedule) -> str:
    if schedule.max_attempts == 1:
        return "A job that fails is not tried again."
    return f"A job is tried {schedule.max_attempts} times before it is a dead letter."


def _delay_value(schedule: Schedule) -> str:
    parts = [f"+{format_duration(schedule.offset)}"] if schedule.offset else []
    return " ".join([*parts, f"±{format_duration(schedule.jitter)}"]) if schedule.jitter else parts[0]


def _delay(schedule: Schedule) -> str:
    parts = []
    if schedule.offset:
        parts.append(f"Its place in its window is {format_duration(schedule.offset)} after each slot.")
    if schedule.jitter:
        parts.append(f"A random delay below {format_duration(schedule.jitter)} is added each time.")
    return " ".join(parts)


def _of_trigger(trigger: Trigger) -> list[Policy]:
    when = options_of(trigger)
    found = []
    if when.cron is not None and when.tz != "UTC":
        found.append(Policy(name="gap", value=when.gap, sentence=_GAP[when.gap]))
        found.append(Policy(name="fold", value=when.fold, sentence=_FOLD[when.fold]))
    if when.calendar is not None:
        roll = when.on_holiday or "skip"
        found.append(
            Policy(
                name="calendar",
                value=f"{when.calendar.name}, {roll}",
                sentence=f"A slot on no business day of {when.calendar.name} {_HOLIDAY[roll]}.",
            )
        )
    for name, edge, verb in (("start", when.start, "begins"), ("end", when.end, "ends")):
        if edge is not None:
            found.append(Policy(name=name, value=f"{edge:%Y-%m-%d %H:%M}Z", sentence=f"It {verb} then."))
    return found


def _tile(slot: Slot, states: Mapping[int, JobState]) -> Tile:
    skipped = slot.reason is not None and slot.disposition is not Disposition.BACKFILLED
    state, ending = "skipped", ""
    if not skipped:
        found = states.get(slot.job_id) if slot.job_id is not None else None
        state, ending = ("gone", "its job is no longer on record") if found is None else _STATES[found]
    late = slot.decided_at - slot.slot_at
    is_late = late >= LATE_START and slot.disposition is Disposition.FIRED
    return Tile(
        slot_at=slot.slot_at,
        state=state,
        words=_words(slot, state),
        sentence=_sentence(slot, ending, late if is_late else None),
        disposition=slot.disposition.value,
        reason=None if slot.reason is None else slot.reason.value,
        job_id=slot.job_id,
        blocker=slot.blocker,
        since=slot.since,
        late=late if is_late else None,
        note=slot.note,
        decided_at=slot.decided_at,
    )


def _words(slot: Slot, state: str) -> str:
    if state == "skipped":
        return f"skipped: {slot.reason}"
    return f"{slot.disposition.value}, {state}"


def _sentence(slot: Slot, ending: str, late: timedelta | None) -> str:
    parts = []
    if not ending:
        parts.append(f"skipped: {_REASONS[slot.reason or '']}")
    elif slot.disposition is Disposition.BACKFILLED:
        before = f" (at the time it was skipped: {slot.reason})" if slot.reason else ""
        parts.append(f"backfilled{before}, {ending}")
    else:
        parts.append(f"fired, {ending}")
    if slot.blocker is not None:
        parts.append(f"job {slot.blocker} was in the way")
    if slot.since is not None:
        verb = "coalesced with" if ending else "together with"
        parts.append(f"{verb} the slots since {moment(slot.since)}")
    if late is not None:
        parts.append(f"{length(late)} late")
    if slot.note:
        parts.append(slot.note)
    return f"{moment(slot.slot_at)}: {'; '.join(parts)}"
