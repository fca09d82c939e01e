"""What answers about jobs, dead letters and graphs look like: the shapes that `ops` gives."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from mainspring.web.api.shapes import Anything, Moment


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


class Period(TypedDict):
    start: Moment | None
    end: Moment | None
    previous: Moment | None
    since: Moment | None
    missed: int
    at_least: bool
    backfill: bool


class JobDetail(Job):
    period: Period | None
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
    first_failed_at: Moment | None
    tried_for_seconds: float | None
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
