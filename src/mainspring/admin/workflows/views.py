"""A workflow as operators see it: one shape for the command line, JSON and pages."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from mainspring.admin.views import FailureView
from mainspring.admin.workflows.graph import Edge
from mainspring.model.value import Value
from mainspring.model.workflow import (
    Cause,
    NodeKind,
    Stopping,
    When,
    WorkflowCommand,
    WorkflowRecord,
    WorkflowState,
)

RUNNING, ENDING = "running", "ending"
"""Of a map: some of its items are live. Of a step: its job has ended, and nobody has dealt with that yet."""


class WorkflowRow(Value, frozen=True, kw_only=True):
    """One workflow of a list."""

    id: int
    name: str
    version: int
    state: WorkflowState
    paused_at: datetime | None
    stopping: Stopping | None
    started_at: datetime
    ended_at: datetime | None
    parent_id: int | None
    """The workflow of which it is a step."""
    forked_from: int | None
    left: int
    """Nodes that have not ended."""
    failed: int

    @classmethod
    def of(cls, workflow: WorkflowRecord, **more: Any) -> Self:
        """Of a workflow as it stands; `more` are the fields that a larger answer adds."""
        return cls(**{name: getattr(workflow, name) for name in WorkflowRow.__struct_fields__}, **more)


class Attempt(Value, frozen=True, kw_only=True):
    """One run of a step's job; without an end, the one under way."""

    number: int
    """Among those on record, counted from 1; retries of the workflow go on counting."""
    verdict: str
    started_at: datetime
    finished_at: datetime | None
    worker: str | None
    error: str | None = None


class LostItem(Value, frozen=True, kw_only=True):
    """An item of a map that failed or was cancelled."""

    item: int
    job_id: int
    state: str
    error: str | None


class ItemsView(Value, frozen=True, kw_only=True):
    """How the items of a map stand."""

    total: int
    counts: dict[str, int]
    lost: tuple[LostItem, ...]
    """The first of those that were lost."""


class NodeView(Value, frozen=True, kw_only=True):
    """One step as it stands."""

    name: str
    kind: NodeKind
    task: str
    when: When
    condition: str | None
    parents: tuple[str, ...]
    layer: int
    undoes: str | None
    state: str
    """A StepState; of a live one, where its job stands: delayed, ready, running or ending."""
    cause: Cause | None
    waits: int
    """Parents that have not ended."""
    job_id: int
    inner: bool
    """Whether it is a workflow itself, which has the id of its job."""
    kept: bool
    """Whether its result was taken over from the workflow that this one was forked from."""
    attempts: int
    max_attempts: int
    worker: str | None
    released_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    items: ItemsView | None = None


class Bar(Value, frozen=True, kw_only=True):
    """One line of the timeline: a step, or an item of a map."""

    name: str
    item: int | None
    job_id: int
    state: str
    released_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempts: tuple[Attempt, ...]


class WorkflowOrderView(Value, frozen=True, kw_only=True):
    """What somebody did to it."""

    at: datetime
    action: WorkflowCommand
    author: str
    note: str | None


class WorkflowView(WorkflowRow, frozen=True, kw_only=True):
    """One workflow with its steps. What steps were given and made is told of one step at a time."""

    as_of: datetime
    params: dict[str, Any]
    counts: dict[str, int]
    """Steps by state."""
    nodes: tuple[NodeView, ...]
    edges: tuple[Edge, ...]
    timeline: tuple[Bar, ...]
    """What was released, in the order of its start; of maps, the first items."""
    orders: tuple[WorkflowOrderView, ...]


class ItemView(Value, frozen=True, kw_only=True):
    """One item of a map."""

    item: int
    job_id: int
    state: str
    cause: Cause | None
    attempts: int
    worker: str | None
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    output: Any


class StepView(Value, frozen=True, kw_only=True):
    """One step, or one item of a map, with what it was given and what it made."""

    workflow_id: int
    node: NodeView
    """The step, of which an item is one of many."""
    item: int | None
    job_id: int
    state: str
    error: str | None
    released_at: datetime | None
    finished_at: datetime | None
    inputs: dict[str, Any] | None
    """The call; None when its job has not been made, or is not on record."""
    output: Any
    attempts: tuple[Attempt, ...]
    failures: tuple[FailureView, ...]
    """Every error its runs reported, with its traceback."""
    items: tuple[ItemView, ...]
    """One page of a map's."""
    first: int
