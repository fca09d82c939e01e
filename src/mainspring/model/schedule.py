"""Schedules, the specs they share, the slots they leave in the ledger, and backfills of past slots."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from mainspring.model.job import DEFAULT_QUEUE
from mainspring.model.limit import LimitKey
from mainspring.model.value import Value

MisfireOption = Literal["latest", "all", "skip"]
OverlapOption = Literal["skip", "queue_one", "queue_all", "allow", "replace"]
"""The same words as the members of the two classes below, in the form that type checkers need."""


class Misfire(StrEnum):
    """What happens to slots that no scheduler could fire in time."""

    LATEST = "latest"
    """One job for the newest of them, unless it is older than the schedule's `catch_up`."""
    ALL = "all"
    """A job for each of them that is not older than the schedule's `catch_up`, made at a bounded rate; their
    jobs wait for each other."""
    SKIP = "skip"
    """None."""


class Overlap(StrEnum):
    """What happens to a slot that comes while its schedule still has a live job."""

    SKIP = "skip"
    """No job; the ledger names the one that was in the way."""
    QUEUE_ONE = "queue_one"
    """A job that waits until the live one has ended; no second one waits."""
    QUEUE_ALL = "queue_all"
    """A job that waits for those before it, however many they are."""
    ALLOW = "allow"
    """A job, unless `overlap_limit` of them are live."""
    REPLACE = "replace"
    """A job, and the live ones are cancelled before it can start."""


class Skipped(StrEnum):
    """Why a slot made no job."""

    MISFIRE = "misfire"
    """No scheduler could fire it in time, and its schedule has misfire="skip"."""
    TOO_LATE = "too_late"
    """No scheduler could fire it before it was older than the schedule's `catch_up`."""
    OVERLAP = "overlap"
    PAUSED = "paused"
    CALENDAR = "calendar"
    BREAKER = "breaker"
    """It was missed, and its schedule had so many live jobs that the circuit breaker left it out."""
    REQUESTED = "requested"
    EXHAUSTED = "exhausted"
    DELETED = "deleted"
    """It was due and not yet fired when its schedule was deleted."""


DROPPED = frozenset({Skipped.TOO_LATE, Skipped.BREAKER})
"""Reasons that are reported as a loss: the job was wanted, but the slot was too old or there were too
many."""


class Disposition(StrEnum):
    """What became of a slot. Every slot has exactly one."""

    FIRED = "fired"
    SKIPPED = "skipped"
    BACKFILLED = "backfilled"
    """Run later, on request; if it was skipped at the time, its reason is kept."""


class Period(Value, frozen=True, kw_only=True):
    """What a slot's job stands for: the time from the slot before it up to its own; from further back where
    missed slots were combined into this one."""

    end: datetime
    """The slot."""
    start: datetime | None = None
    """The slot before the first one that the job stands for; None where there is none, or it is not known."""
    previous: datetime | None = None
    """The slot before this one. A slot that a calendar leaves out does not count."""
    since: datetime | None = None
    """The first of the missed slots that were combined into this one; None where none were."""
    missed: int = 0
    """How many those are, this one not counted."""
    at_least: bool = False
    """Whether there may be more of them than were counted."""
    backfill: bool = False
    """Whether the job was made by a backfill, after its slot had passed."""


class DeletedSlots(Value, frozen=True, kw_only=True):
    """Slots that were due when their schedule was deleted, so that they make no job."""

    schedule: str
    since: datetime | None
    slot_at: datetime | None
    """The ends of missed slots that share one row of the ledger; None for slots with a row each."""
    rows: int


class SlotFacts(Value, frozen=True, kw_only=True):
    """What is on record about a slot whose job asks what it stands for."""

    trigger: str | None
    """The schedule's when the slot came; None where no version of it is kept."""
    since: datetime | None = None
    backfilled: bool = False


class NewSchedule(Value, frozen=True, kw_only=True):
    """A schedule to be written. `trigger` is its canonical JSON: equal triggers share one spec."""

    name: str
    task: str
    trigger: str
    payload: bytes
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int = 1
    misfire: Misfire = Misfire.LATEST
    catch_up: timedelta | None = None
    """How old a missed slot may be and still be fired; None for however old."""
    overlap: Overlap = Overlap.SKIP
    overlap_limit: int = 1
    """How many may be live at once, with Overlap.ALLOW."""
    offset: timedelta = timedelta()
    """How long after its slot a job is due: the schedule's own place in its window."""
    jitter: timedelta = timedelta()
    """A random delay below this is added for each slot."""
    max_fires: int | None = None
    """How many slots may fire in all; None for no limit."""
    limit_keys: tuple[LimitKey, ...] | None = None
    """Limits that its jobs must pass; None leaves those that are on record."""
    expires: timedelta | None = None
    """How long after its slot a job must have succeeded."""
    expect_start_within: timedelta | None = None
    """How long after its slot a job should have started; later than that is an alert."""
    expect_finish_by: timedelta | None = None
    """How long after its slot a job should have ended; later than that is an alert."""
    next_at: datetime | None = None
    """First and second slot after now, used when the trigger is new to the store."""
    following_at: datetime | None = None


class Schedule(Value, frozen=True, kw_only=True):
    """A schedule as it is on record."""

    id: int
    name: str
    task: str
    trigger: str
    payload: bytes
    queue: str
    priority: int
    max_attempts: int
    misfire: Misfire
    catch_up: timedelta | None
    overlap: Overlap
    overlap_limit: int
    offset: timedelta
    jitter: timedelta
    max_fires: int | None
    fires_left: int | None
    skips: int
    """How many of the next slots are to be skipped on request."""
    version: int
    active_from: datetime
    """Slots at or before this moment do not belong to this schedule."""
    edited: bool
    """Changed by an operator since code declared it: code no longer changes it."""
    paused_at: datetime | None
    paused_by: str | None
    pause_note: str | None
    next_at: datetime | None
    limit_set_id: int | None = None
    """Where its jobs wait for their limits."""
    expires: timedelta | None = None
    expect_start_within: timedelta | None = None
    expect_finish_by: timedelta | None = None


class Change(StrEnum):
    """What a new version of a schedule came from."""

    CREATED = "created"
    CHANGED = "changed"
    PAUSED = "paused"
    RESUMED = "resumed"
    SKIPPING = "skipping"
    """Slots to come are to be left out."""
    REVERTED = "reverted"
    """What code declares counts again."""
    DELETED = "deleted"

    @property
    def words(self) -> str:
        """As it reads in a sentence."""
        return self.replace("_", " ")


class ScheduleVersion(Value, frozen=True, kw_only=True):
    """A schedule as it was from `changed_at` until its next version."""

    schedule: Schedule
    version: int
    change: Change
    changed_at: datetime
    author: str
    note: str | None


class Spec(Value, frozen=True, kw_only=True):
    """A trigger that falls due, for every schedule that shares it."""

    id: int
    trigger: str
    next_at: datetime
    following_at: datetime | None
    """The slot after `next_at`, computed ahead; None when there is none or it is not yet known."""
    planned: bool = True
    """Whether `following_at` is known."""
    one_by_one: bool = False
    """Whether every missed slot is opened for itself; otherwise the newest stands for all."""
    catch_up: timedelta | None = None
    """Where they are opened one by one, how old a missed slot may be; None for however old."""
    tripped: bool = False
    """Whether the circuit breaker leaves out the missed slots of every one of its schedules."""
    skips: int = 0
    """How many slots are to be skipped of the schedule that was asked to skip the most."""
    last_at: datetime | None = None
    """The slot that was opened last, but for those that a calendar leaves out; None where none was."""


class Opening(Value, frozen=True, kw_only=True):
    """A decision to open one slot of a spec, valid only while the spec still stands at `expected`."""

    spec_id: int
    expected: datetime
    slot_at: datetime
    since: datetime | None
    """First of the missed slots that this one stands for; None when none was missed."""
    combined: tuple[datetime, ...] = ()
    """The newest of those missed slots, as many as a schedule is asked to skip."""
    next_at: datetime | None
    skip: Skipped | None = None
    """Why no schedule makes a job of it; None when each decides for itself."""
    note: str | None = None
    """What is odd about the slot, such as a night on which the clocks change."""
    previous: datetime | None = None
    """The slot before it; None where there is none, or where this one stands for missed ones."""


class Drop(Value, frozen=True, kw_only=True):
    """A schedule that has lost a slot, for a reason in DROPPED."""

    schedule: str
    reason: Skipped


class Chunk(Value, frozen=True, kw_only=True):
    """What one firing statement did to one part of one fire."""

    slot_at: datetime
    fired: int
    skipped: int
    late: timedelta
    since: datetime | None = None
    """First of the slots that this one stands for, when there are several."""
    dropped: tuple[Drop, ...] = ()
    """Of those skipped, the ones that are reported as a loss."""


class Slot(Value, frozen=True, kw_only=True):
    """One row of the ledger."""

    schedule: str
    slot_at: datetime
    disposition: Disposition
    reason: Skipped | None
    since: datetime | None
    """Slots of this schedule from here up to `slot_at` share this one's fate and made no job."""
    job_id: int | None
    decided_at: datetime
    blocker: int | None = None
    """The live job that was in the way."""
    note: str | None = None


class ComingFire(Value, frozen=True, kw_only=True):
    """The next slot of one schedule."""

    schedule: str
    task: str
    queue: str
    slot_at: datetime
    paused: bool = False
    """It will be skipped, unless the schedule is resumed before."""


class Only(StrEnum):
    """Which schedules to list."""

    PAUSED = "paused"
    EDITED = "edited"
    """Changed by an operator since code declared them."""
    OVERDUE = "overdue"
    """A slot of theirs has passed and is not decided."""
    ENDED = "ended"
    """They have no slot left."""


class ScheduleFilter(Value, frozen=True, kw_only=True):
    """Which schedules to list, by name; `after` is where the page before says to go on."""

    text: str | None = None
    """What the name of the schedule or of its task holds, in whatever case."""
    task: str | None = None
    queue: str | None = None
    only: Only | None = None
    late: timedelta = timedelta(seconds=5)
    """How late a slot is overdue."""
    after: str | None = None
    limit: int = 50


class ScheduleRow(Value, frozen=True, kw_only=True):
    """A schedule and the newest slot that is on its record."""

    schedule: Schedule
    last: Slot | None = None


class SchedulePage(Value, frozen=True, kw_only=True):
    """Schedules by name. The number of rows that are looked at is bounded, so a page may have fewer schedules
    than asked for and still name a next one."""

    rows: tuple[ScheduleRow, ...]
    next: str | None = None
    partial: bool = False


class ScheduleCounts(Value, frozen=True, kw_only=True):
    """How many schedules there are, of the first so many by name."""

    total: int
    paused: int
    edited: int
    overdue: int
    ended: int
    oldest_due_at: datetime | None
    """The earliest slot that is due and not dealt with."""
    more: bool = False
    """There are more schedules than were looked at."""


class StoredCalendar(Value, frozen=True, kw_only=True):
    """One version of a named calendar; `definition` is its canonical JSON and never changes."""

    name: str
    version: int
    definition: str


class Reprocess(StrEnum):
    """Which slots that made a job are run once more."""

    NONE = "none"
    FAILED = "failed"
    """Those whose job died or was cancelled."""
    ALL = "all"
    """All whose job has ended."""


class BackfillState(StrEnum):
    """Where a backfill stands."""

    ACTIVE = "active"
    DONE = "done"
    CANCELLED = "cancelled"


class BackfillSlot(Value, frozen=True, kw_only=True):
    """A slot to be run, as the version in force at that time says."""

    slot_at: datetime
    schedule_id: int
    version: int
    seen: int | None = None
    """The job that the ledger named when this was planned: another one since means that the slot was run
    meanwhile."""


class NewBackfill(Value, frozen=True, kw_only=True):
    """A backfill to be written, its slots in the order in which they are to run."""

    schedule: str
    start: datetime
    end: datetime
    slots: tuple[BackfillSlot, ...]
    author: str
    max_active: int = 1
    reverse: bool = False
    reprocess: Reprocess = Reprocess.NONE


class Backfill(Value, frozen=True, kw_only=True):
    """A backfill as it is on record."""

    id: int
    schedule: str
    start: datetime
    end: datetime
    author: str
    max_active: int
    reverse: bool
    reprocess: Reprocess
    state: BackfillState
    created_at: datetime
    ended_at: datetime | None
    cancelled_by: str | None
    slots: int
    """How many in all."""
    made: int
    """How many have their job."""
    left: int
    """How many were left alone, because they had been run meanwhile."""
    live: int
    """How many of the jobs have not ended."""


class Advance(Value, frozen=True, kw_only=True):
    """What one pass over the active backfills found and did."""

    active: int
    made: int


class BackfillJob(Value, frozen=True, kw_only=True):
    """A job that a backfill made of a slot, and the one it did over."""

    slot_at: datetime
    job_id: int
    seen: int | None
