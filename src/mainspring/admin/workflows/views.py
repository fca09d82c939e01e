"""The answers about a workflow, for the command line, JSON and pages."""

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
"""RUNNING: a map has live items. ENDING: the job of a step has ended, and the end is not processed yet."""


class WorkflowRow(Value, frozen=True, kw_only=True):
    """One workflow in a list."""

    id: int
    name: str
    version: int
    state: WorkflowState
    paused_at: datetime | None
    stopping: Stopping | None
    started_at: datetime
    ended_at: datetime | None
    parent_id: int | None
    """The workflow that has this workflow as a step."""
    forked_from: int | None
    left: int
    """The number of nodes that have not ended."""
    failed: int

    @classmethod
    def of(cls, workflow: WorkflowRecord, **more: Any) -> Self:
        """Of a workflow; `more` are the fields that a larger answer adds."""
        return cls(**{name: getattr(workflow, name) for name in WorkflowRow.__struct_fields__}, **more)


class Attempt(Value, frozen=True, kw_only=True):
    """One run of a step's job. The current run has no end."""

    number: int
    """Its number among the stored attempts, counted from 1. Retries of the workflow continue the count."""
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
    """The states of the items of a map."""

    total: int
    counts: dict[str, int]
    lost: tuple[LostItem, ...]
    """The first lost items."""


class NodeView(Value, frozen=True, kw_only=True):
    """The current state of one step."""

    name: str
    kind: NodeKind
    task: str
    when: When
    condition: str | None
    parents: tuple[str, ...]
    layer: int
    undoes: str | None
    state: str
    """A StepState, or the state of the job of a live step: delayed, ready, running or ending."""
    cause: Cause | None
    waits: int
    """The number of parents that have not ended."""
    job_id: int
    inner: bool
    """Whether the step is a workflow itself, which has the id of its job."""
    kept: bool
    """Whether its result was copied from the workflow that this one was forked from."""
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
    """An order that was given to a workflow."""

    at: datetime
    action: WorkflowCommand
    author: str
    note: str | None


class WorkflowView(WorkflowRow, frozen=True, kw_only=True):
    """One workflow with its steps. `StepView` has the inputs and the output of one step."""

    as_of: datetime
    params: dict[str, Any]
    counts: dict[str, int]
    """Steps by state."""
    nodes: tuple[NodeView, ...]
    edges: tuple[Edge, ...]
    timeline: tuple[Bar, ...]
    """The released steps, in the order of their start, with the first items of maps."""
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
    """One step, or one item of a map, with its inputs and its output."""

    workflow_id: int
    node: NodeView
    """The step, also if this answer is about one of its items."""
    item: int | None
    job_id: int
    state: str
    error: str | None
    released_at: datetime | None
    finished_at: datetime | None
    inputs: dict[str, Any] | None
    """The arguments; None if its job is not created yet, or not stored any more."""
    output: Any
    attempts: tuple[Attempt, ...]
    failures: tuple[FailureView, ...]
    """Every error of its runs, with its traceback."""
    items: tuple[ItemView, ...]
    """One page of the items of a map."""
    first: int
