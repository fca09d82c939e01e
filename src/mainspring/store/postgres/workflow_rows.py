"""Rows of workflows and their steps on PostgreSQL, into model values and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainspring.model.workflow import Cause, Step, Stopping, Workflow
from mainspring.store.codes import STEP, STEP_CODE, WORKFLOW, WORKFLOW_CODE
from mainspring.store.postgres.rows import failure, written

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


def to_step(row: Record) -> Step:
    """A row of `workflow_steps`."""
    return Step(
        id=row["id"],
        workflow_id=row["workflow_id"],
        place=row["place"],
        item=row["item"],
        state=STEP[row["state"]],
        waits=row["waits"],
        failed=row["items_failed"],
        fence=row["fence"],
        cause=None if row["cause"] is None else Cause(row["cause"]),
        result=row["result"],
        error=failure(row["error"]),
        ended_at=row["ended_at"],
    )


def to_workflow(row: Record) -> Workflow:
    """A row of `workflows`."""
    return Workflow(
        id=row["id"],
        name=row["name"],
        definition_id=row["definition_id"],
        version=row["version"],
        state=WORKFLOW[row["state"]],
        params=row["params"],
        left=row["nodes_left"],
        failed=row["nodes_failed"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        stopping=None if row["stopping"] is None else Stopping(row["stopping"]),
        paused_at=row["paused_at"],
        parent_id=row["parent_id"],
        forked_from=row["forked_from"],
        step_ids=tuple(row["step_ids"]),
    )


def new_steps(steps: Sequence[Step]) -> dict[str, object]:
    """New steps as a statement takes them."""
    return {
        **step_states(steps),
        "workflow_ids": [step.workflow_id for step in steps],
        "places": [step.place for step in steps],
        "items": [step.item for step in steps],
    }


def step_states(steps: Sequence[Step]) -> dict[str, object]:
    """What of a step may change."""
    return {
        "ids": [step.id for step in steps],
        "states": [STEP_CODE[step.state] for step in steps],
        "waits": [step.waits for step in steps],
        "faileds": [step.failed for step in steps],
        "fences": [step.fence for step in steps],
        "causes": [step.cause for step in steps],
        "results": [step.result for step in steps],
        "errors": [None if step.error is None else written(step.error) for step in steps],
        "ended_ats": [step.ended_at for step in steps],
    }


def workflow_states(workflows: Sequence[Workflow]) -> dict[str, object]:
    """What of a workflow may change."""
    return {
        "ids": [each.id for each in workflows],
        "states": [WORKFLOW_CODE[each.state] for each in workflows],
        "nodes_lefts": [each.left for each in workflows],
        "nodes_faileds": [each.failed for each in workflows],
        "stoppings": [each.stopping for each in workflows],
        "paused_ats": [each.paused_at for each in workflows],
        "ended_ats": [each.ended_at for each in workflows],
    }


def new_workflows(workflows: Sequence[Workflow]) -> dict[str, object]:
    """New workflows as a statement takes them."""
    return {
        "ids": [each.id for each in workflows],
        "names": [each.name for each in workflows],
        "definition_ids": [each.definition_id for each in workflows],
        "parent_ids": [each.parent_id for each in workflows],
        "forked_froms": [each.forked_from for each in workflows],
        "params": [each.params for each in workflows],
        # Arrays of several lengths are no array to PostgreSQL.
        "step_ids": [",".join(map(str, each.step_ids)) for each in workflows],
        "nodes_lefts": [each.left for each in workflows],
    }
