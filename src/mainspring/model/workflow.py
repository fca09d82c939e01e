"""Workflows: graphs of steps as they are declared, and as they stand."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

import msgspec

from mainspring.model.job import DEFAULT_QUEUE, Failure
from mainspring.model.limit import LimitKey
from mainspring.model.value import Value

MOST_STEPS = 1000
DEEPEST = 100
WIDEST = 10_000
"""Items of one map."""
LARGEST_INPUT = 1024 * 1024
"""Bytes of JSON that a step may be given: a join is given what all its parents made."""


WhenOption = Literal["success", "failure", "always"]
"""The same words as the members of the class below, in the form that type checkers need."""


class When(StrEnum):
    """After which endings of its parents a step runs."""

    SUCCESS = "success"
    """None of them failed; one that was skipped by its own condition counts as none, unless its result is
    needed."""
    FAILURE = "failure"
    """At least one of them failed, or was skipped because of a failure before it."""
    ALWAYS = "always"
    """All have ended, however."""


class NodeKind(StrEnum):
    """What a node of the graph is."""

    STEP = "step"
    MAP = "map"
    """A step for each item of a list, known only when it is due."""
    BARRIER = "barrier"
    """Nothing to run: it ends when every step before it has, and what is to be undone comes after it."""
    UNDO = "undo"
    """Undoes a step that succeeded, if the workflow did not."""


class Constant(Value, frozen=True, kw_only=True, tag="constant"):
    """A value known at declaration."""

    value: object


class Param(Value, frozen=True, kw_only=True, tag="param"):
    """What the workflow was started with."""

    name: str
    path: tuple[str | int, ...] = ()


class StepResult(Value, frozen=True, kw_only=True, tag="result"):
    """The result of a step; of a map, the list of the results of its items; null where there is none."""

    step: int
    """Its place in the definition."""
    path: tuple[str | int, ...] = ()
    """Keys and places inside it."""


class Items(Value, frozen=True, kw_only=True, tag="items"):
    """A list of inputs."""

    items: tuple[Input, ...]


class Fields(Value, frozen=True, kw_only=True, tag="fields"):
    """A mapping of inputs."""

    fields: dict[str, Input]


Input = Constant | Param | StepResult | Items | Fields


class Condition(Value, frozen=True, kw_only=True):
    """An expression in a closed grammar, and what its names stand for."""

    text: str
    names: dict[str, Input] = msgspec.field(default_factory=dict)


class Limiting(Value, frozen=True, kw_only=True):
    """A limit key of the step's jobs, whose key may be the value of a parameter."""

    limit_key: LimitKey
    by: str | None = None
    place: int | None = None
    """Where the parameter is among the positional arguments."""


class Node(Value, frozen=True, kw_only=True):
    """One step of a definition: what its job is made from."""

    name: str
    kind: NodeKind = NodeKind.STEP
    task: str = ""
    args: tuple[Input, ...] = ()
    kwargs: dict[str, Input] = msgspec.field(default_factory=dict)
    over: Input | None = None
    """Of a map: the list. Each item is the first positional argument of one job."""
    parents: tuple[int, ...] = ()
    """Places of the nodes that must have ended before: those it waits for, and those it reads."""
    when: When = When.SUCCESS
    only_if: Condition | None = None
    of: int | None = None
    """Of an undo: the step that it takes back."""
    queue: str = DEFAULT_QUEUE
    priority: int = 0
    max_attempts: int = 1
    delay: timedelta = timedelta()
    expires: timedelta | None = None
    limits: tuple[Limiting, ...] = ()


class Definition(Value, frozen=True, kw_only=True):
    """A graph that has been checked: every place named is there, and none is its own ancestor."""

    name: str
    nodes: tuple[Node, ...]
    returns: Input | None = None
    """The result of the whole workflow."""


class NewWorkflow(Value, frozen=True, kw_only=True):
    """A workflow to be started. It belongs to the job whose run starts it, and has its id."""

    definition: Definition
    params: dict[str, object] = msgspec.field(default_factory=dict)


class WorkflowState(StrEnum):
    """Where a workflow stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class StepState(StrEnum):
    """Where a step stands. The first two are not final."""

    WAITING = "waiting"
    """For its parents, or for a workflow that is paused to go on."""
    LIVE = "live"
    """Its job is in the queue or running; of a map, its items are."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


LIVE_STEPS = (StepState.WAITING, StepState.LIVE)


class Cause(StrEnum):
    """Why a step was skipped."""

    CONDITION = "condition"
    """Its own condition, its `when`, or there was nothing to undo."""
    ITSELF = "itself"
    """Its handler raised Discard."""
    INPUT = "input"
    """A step whose result it needs was skipped."""
    FAILURE = "failure"
    """A step before it failed."""
    STOPPED = "stopped"
    """The workflow was cancelled, or its deadline passed."""


class Stopping(StrEnum):
    """Why a workflow makes no more steps that want success."""

    CANCELLED = "cancelled"
    EXPIRED = "expired"
    KILLED = "killed"
    """Cancelled, and nothing more is to run: not even what runs always."""


class StepRecord(Value, frozen=True, kw_only=True):
    """One step of a workflow, or one item of a map. Its job has the same id."""

    id: int
    workflow_id: int
    place: int
    item: int | None = None
    state: StepState = StepState.WAITING
    waits: int = 0
    """Parents that have not ended; of a map that is live, items that have not."""
    failed: int = 0
    """Of a map: items that failed or were cancelled."""
    fence: int = 0
    """How often its job had been claimed when it was last made ready: claims go on counting."""
    cause: Cause | None = None
    result: bytes | None = None
    error: Failure | None = None
    """Why it failed without a run: what its inputs or its condition came to."""
    ended_at: datetime | None = None


class WorkflowRecord(Value, frozen=True, kw_only=True):
    """A workflow as it stands."""

    id: int
    """That of the job that started it."""
    name: str
    definition_id: int
    version: int
    """Of its definition, counted by name."""
    state: WorkflowState
    params: bytes
    left: int
    """Nodes that have not ended."""
    failed: int
    """Nodes that failed or were cancelled."""
    started_at: datetime
    ended_at: datetime | None = None
    stopping: Stopping | None = None
    paused_at: datetime | None = None
    parent_id: int | None = None
    """The workflow of which it is a step."""
    forked_from: int | None = None
    step_ids: tuple[int, ...] = ()
    """One for each node, in the order of the definition."""


class WorkflowCommand(StrEnum):
    """A command to a workflow."""

    PAUSED = "paused"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    FORKED = "forked"


class WorkflowOrder(Value, frozen=True, kw_only=True):
    """A command to a workflow, as it was recorded."""

    workflow_id: int
    at: datetime
    action: WorkflowCommand
    author: str
    note: str | None = None


class WorkflowEnd(Value, frozen=True, kw_only=True):
    """A workflow that has ended."""

    workflow_id: int
    name: str
    state: WorkflowState


class Resolved(Value, frozen=True, kw_only=True):
    """What one pass over the endings of steps did."""

    taken: int = 0
    """Endings that were processed."""
    released: int = 0
    """Jobs that were made."""
    ended: tuple[WorkflowEnd, ...] = ()
    busy: bool = False
    """Endings are left whose workflow another process has locked."""
