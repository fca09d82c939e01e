"""What answers about schedules look like: the shapes that `ops` gives."""

from __future__ import annotations

from typing import TypedDict

from mainspring.web.api.job_shapes import Call, Period
from mainspring.web.api.shapes import Anything, Moment


class Schedule(Call):
    id: int
    name: str
    task: str
    trigger: Anything
    queue: str
    priority: int
    max_attempts: int
    misfire: str
    catch_up: str | None
    overlap: str
    overlap_limit: int
    offset: str
    jitter: str
    max_fires: int | None
    expires: str | None
    expect_start_within: str | None
    expect_finish_by: str | None
    fires_left: int | None
    skips: int
    version: int
    active_from: Moment | None
    edited: bool
    paused_at: Moment | None
    paused_by: str | None
    pause_note: str | None
    next_at: Moment | None


class Slot(TypedDict):
    schedule: str
    slot_at: Moment
    disposition: str
    reason: str | None
    since: Moment | None
    job_id: int | None
    decided_at: Moment
    blocker: int | None
    note: str | None


class ListedSchedule(Schedule):
    last: Slot | None


class ScheduleDetail(Schedule):
    slots: list[Slot]
    fires: list[Moment] | None


class Fires(TypedDict):
    fires: list[Moment] | None


class Fire(TypedDict):
    at: Moment
    local: str
    note: str | None


class Preview(TypedDict):
    fires: list[Fire]


class Difference(TypedDict):
    field: str
    was: Anything
    now: Anything


class Version(TypedDict):
    version: int
    changed_at: Moment
    author: str | None
    change: str
    differences: list[Difference]
    note: str | None
    schedule: Schedule


class Versions(TypedDict):
    items: list[Version]


class Planned(TypedDict):
    name: str
    action: str
    differences: list[Difference]
    next_fires: list[Moment]
    dropped_slots: int


class Plan(TypedDict):
    items: list[Planned]


class WrittenSchedule(TypedDict):
    name: str
    effect: str
    dry_run: bool
    version: int
    paused: bool
    differences: list[Difference]
    schedule: dict[str, Anything]
    fires: list[Fire]


class ScheduleDone(TypedDict):
    name: str
    effect: str
    why: str


class ScheduleDones(TypedDict):
    items: list[ScheduleDone]


class Triggered(TypedDict):
    name: str
    job_id: int
    task: str
    queue: str


class Skipping(TypedDict):
    name: str
    added: int
    skips: int


class SlotAnswer(TypedDict):
    schedule: str
    at: Anything
    last: Anything
    next: Anything


Backfill = TypedDict(
    "Backfill",
    {
        "id": int,
        "schedule": str,
        "from": Moment,
        "to": Moment,
        "state": str,
        "slots": int,
        "made": int,
        "left": int,
        "live": int,
        "max_active": int,
        "reverse": bool,
        "reprocess": str,
        "author": str,
        "created_at": Moment,
        "ended_at": Moment | None,
        "cancelled_by": str | None,
    },
)


class PlannedSlot(TypedDict):
    slot_at: Moment
    version: int
    run: bool
    why: str
    job_id: int | None


class Backfilling(TypedDict):
    backfill: Backfill | None
    to_run: int
    slots: list[PlannedSlot]
    cut: bool


class Backfills(TypedDict):
    items: list[Backfill]


class Cancelled(TypedDict):
    id: int
    cancelled: bool


class SimulatedSlot(TypedDict):
    schedule: str
    slot_at: Moment
    fate: str
    reason: str | None
    decided_at: Moment
    late_seconds: float
    into: Moment | None
    runs_at: Moment | None
    note: str | None
    period: Period | None


class Simulation(TypedDict):
    slots: list[SimulatedSlot]
    cut: bool
    notes: list[str]


class Share(TypedDict):
    name: str
    jobs: int


class Peak(TypedDict):
    minute: Moment
    jobs: int
    schedules: list[Share]


class Window(TypedDict):
    seconds: float
    peak: int


class Load(TypedDict):
    total: int
    busy_minutes: int
    peaks: list[Peak]
    by_hour: list[int]
    window: Window
