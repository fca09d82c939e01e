"""What answers look like: the shapes that `ops` gives, as types from which the OpenAPI document is made."""

from __future__ import annotations

from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

Moment = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Anything = Any


class JobHandle(TypedDict):
    id: int
    task: str
    queue: str
    created: bool


class JobHandles(TypedDict):
    items: list[JobHandle]


class Failure(TypedDict):
    type: str
    message: str
    traceback: str
    attempt: int
    at: Moment | None


class Call(TypedDict):
    args: list[Anything] | None
    kwargs: dict[str, Anything] | None
    payload: NotRequired[str]


class Job(Call):
    id: int
    task: str
    queue: str
    priority: int
    state: str
    run_at: Moment | None
    enqueued_at: Moment | None
    finished_at: Moment | None
    expires_at: Moment | None
    max_attempts: int
    failures: int
    crashes: int
    fence: int
    worker_id: str | None
    schedule_id: int | None
    slot_at: Moment | None
    result: Anything
    result_gone: NotRequired[bool]
    errors: list[Failure]


class ListedJob(Job):
    hint: str | None


class Progress(TypedDict):
    fraction: float
    note: str | None
    at: Moment | None


class Run(TypedDict):
    job_id: int
    task: str
    queue: str
    attempt: int
    verdict: str
    worker_id: str | None
    fence: int
    started_at: Moment | None
    finished_at: Moment | None
    seconds: float | None
    failure: Failure | None
    result: Anything
    result_gone: NotRequired[bool]
    before: NotRequired[Call]


class JobDetail(Job):
    progress: Progress | None
    awaits: str | None
    workflow: NotRequired[str]
    workflow_id: NotRequired[int]
    step: NotRequired[str]
    item: NotRequired[int | None]
    runs: list[Run]


class Runs(TypedDict):
    items: list[Run]


class RunLog(TypedDict):
    run: int
    attempt: int
    verdict: str
    fence: int
    finished_at: Moment | None
    log: str | None


class RunLogs(TypedDict):
    items: list[RunLog]


class JobResult(TypedDict):
    id: int
    state: str
    ended: bool
    result: Anything
    result_gone: bool
    error: Failure | None


class Done(TypedDict):
    id: int
    effect: str
    was: str | None
    why: str


class Dones(TypedDict):
    items: list[Done]


class Answer(TypedDict):
    because: str
    sentence: str


class DeadLetter(Job):
    died_at: Moment
    reason: str
    workflow_id: NotRequired[int]


class EditedDeadLetter(TypedDict):
    changed: bool
    letter: DeadLetter


class DeadGroup(TypedDict):
    task: str
    error: str
    line: str
    count: int
    newest_at: Moment
    newest_id: int


class DeadGroups(TypedDict):
    items: list[DeadGroup]


class Replayed(TypedDict):
    replayed: int
    ids: list[int]
    complete: bool
    left: int
    workflows: list[int]
    next: str | None


class Purged(TypedDict):
    purged: int
    complete: bool


class Schedule(Call):
    id: int
    name: str
    task: str
    trigger: Anything
    queue: str
    priority: int
    max_attempts: int
    misfire: str
    catch_up: str
    overlap: str
    overlap_limit: int
    offset: str
    jitter: str
    max_fires: int | None
    expires: str | None
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


class Because(TypedDict):
    because: str
    sentence: str


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


class Queue(TypedDict):
    name: str
    ready: int
    delayed: int
    running: int
    oldest_ready_at: Moment | None
    workers: int
    paused_at: Moment | None
    paused_by: str | None
    pause_note: str | None


class Queues(TypedDict):
    items: list[Queue]


class Changed(TypedDict):
    name: str
    changed: bool


class Limit(TypedDict):
    name: str
    key: str | None
    concurrency: int | None
    rate: float | None
    per: float | None
    burst: int | None
    fair: bool
    used: int
    waiting: int
    holders: list[int]


class Limits(TypedDict):
    items: list[Limit]


class Member(TypedDict):
    id: str
    role: str
    name: str
    queues: list[str]
    tasks: list[str]
    version: str
    tzdata: str
    started_at: Moment
    lease_until: Moment
    alive: bool


class Members(TypedDict):
    items: list[Member]


class Lease(TypedDict):
    name: str
    token: int
    holder: str
    acquired_at: Moment
    expires_at: Moment
    held: bool


class Leases(TypedDict):
    items: list[Lease]


class SentEvent(TypedDict):
    name: str
    job_id: int | None
    sent: bool


class Finding(TypedDict):
    kind: str
    schedule: str
    slot_at: Moment | None
    until: Moment | None
    count: int
    detail: str


Audit = TypedDict(
    "Audit",
    {
        "from": Moment,
        "to": Moment,
        "schedules": int,
        "slots": int,
        "ok": bool,
        "sentence": str,
        "notes": list[str],
        "findings": list[Finding],
    },
)


class Check(TypedDict):
    name: str
    level: str
    sentence: str


class Checks(TypedDict):
    ok: bool
    items: list[Check]


class About(TypedDict):
    version: str
    python: str
    now: Moment
    tasks: list[str]


class GraphNode(TypedDict):
    place: int
    name: str
    kind: str
    task: str
    when: str
    condition: str | None
    parents: list[str]
    layer: int
    undoes: str | None
    state: NotRequired[str]


class GraphEdge(TypedDict):
    source: str
    target: str


class Graph(TypedDict):
    name: str
    nodes: list[GraphNode]
    edges: list[GraphEdge]


class Problem(TypedDict):
    title: str
    status: int
    code: str
    detail: str


class Token(TypedDict):
    id: int
    name: str
    role: str
    scopes: list[str]
    hint: str
    author: str
    created_at: Moment
    expires_at: Moment | None
    last_used_at: Moment | None
    revoked_at: Moment | None
    alive: bool


class NewToken(Token):
    secret: str


class Tokens(TypedDict):
    items: list[Token]


class Session(TypedDict):
    id: int
    name: str
    role: str
    scopes: list[str]
    token_id: int | None
    opened_at: Moment
    seen_at: Moment


class Sessions(TypedDict):
    items: list[Session]


class Ended(TypedDict):
    id: int
    ended: bool


class Me(TypedDict):
    name: str
    role: str
    via: str
    scopes: list[str]


class ActEntry(TypedDict):
    id: int
    at: Moment
    act: str
    actor: str
    role: str
    via: str
    target: str
    address: str
    outcome: str
    details: Anything
    ended_at: Moment | None
    result: Anything


class Verified(TypedDict):
    sound: bool
    entries: int
    head: str
    bad_id: int | None
    why: str | None
