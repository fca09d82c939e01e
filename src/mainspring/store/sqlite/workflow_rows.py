"""Rows of workflows and their steps on SQLite, into model values and back."""

from __future__ import annotations

import sqlite3

import msgspec

from mainspring.model.failure import Failure
from mainspring.model.workflow import Cause, Step, Stopping, Workflow
from mainspring.store.codes import STEP, STEP_CODE, WORKFLOW
from mainspring.store.sqlite.rows import maybe_moment, micros, moment, written

_failure = msgspec.json.Decoder(Failure)
_numbers = msgspec.json.Decoder(tuple[int, ...])


def to_step(row: sqlite3.Row) -> Step:
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
        error=None if row["error"] is None else _failure.decode(row["error"]),
        ended_at=maybe_moment(row["ended_at"]),
    )


def to_workflow(row: sqlite3.Row) -> Workflow:
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
        started_at=moment(row["started_at"]),
        ended_at=maybe_moment(row["ended_at"]),
        stopping=None if row["stopping"] is None else Stopping(row["stopping"]),
        paused_at=maybe_moment(row["paused_at"]),
        parent_id=row["parent_id"],
        forked_from=row["forked_from"],
        step_ids=_numbers.decode(row["step_ids"]),
    )


def record(step: Step) -> dict[str, object]:
    """A step as its row keeps it."""
    return {
        "id": step.id,
        "workflow_id": step.workflow_id,
        "place": step.place,
        "item": step.item,
        "state": STEP_CODE[step.state],
        "waits": step.waits,
        "failed": step.failed,
        "fence": step.fence,
        "cause": step.cause,
        "result": step.result,
        "error": None if step.error is None else written(step.error),
        "ended_at": micros(step.ended_at),
    }
