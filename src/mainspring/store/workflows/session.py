"""Workflow sessions: the named statements about workflows in one transaction; and the text of definitions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from mainspring.errors import Unreadable
from mainspring.model.job import Failure, NewJob
from mainspring.model.workflow import Definition, StepRecord, WorkflowRecord
from mainspring.rules.graph import Graph
from mainspring.rules.resolution import Resolution
from mainspring.store.codes import ROOT_VERDICT, STEP, STEP_CODE, WORKFLOW, WORKFLOW_CODE
from mainspring.store.database import Row, Stamp, Transaction
from mainspring.store.rows import moment, reader, written

to_step = reader(StepRecord, state=lambda row: STEP[row["state"]], failed=lambda row: row["items_failed"])
to_workflow = reader(
    WorkflowRecord,
    state=lambda row: WORKFLOW[row["state"]],
    left=lambda row: row["nodes_left"],
    failed=lambda row: row["nodes_failed"],
)
_by_id = attrgetter("id")
_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(Definition).decode


class StepJobs(Protocol):
    """Jobs and definitions of workflows, which each dialect writes in its own way. PostgreSQL has a cache of
    its numbers."""

    async def graph(self, tx: Any, definition_id: int) -> Graph:
        """The graph of a definition. Outside of a transaction, `tx` is the database."""

    async def definition_id(self, tx: Any, definition: Definition, at: Stamp) -> int:
        """The number of a definition. A new definition is written."""

    async def take_ids(self, tx: Any, count: int) -> list[int]:
        """Ids that no other job will have."""

    async def insert(self, tx: Any, jobs: Sequence[tuple[StepRecord, NewJob]], at: Stamp) -> None:
        """Put the jobs of steps into their queues."""


class WorkflowSession:
    """The statements about workflows in one transaction."""

    def __init__(self, tx: Transaction, jobs: StepJobs, *, now: datetime, at: Stamp) -> None:
        self._tx, self._jobs, self._at = tx, jobs, at
        self.now = now

    @classmethod
    async def of(cls, tx: Transaction, jobs: StepJobs, at: Stamp) -> WorkflowSession:
        """A session in this transaction, at its moment."""
        [row] = await tx.fetch("now", at=at)
        return cls(tx, jobs, now=moment(row["now"]), at=at)

    async def fetch(self, statement: str, **params: object) -> Sequence[Row]:
        """Run a statement with the moment of the session; answer its rows."""
        return await self._tx.fetch(statement, **params, at=self._at)

    async def steps(self, statement: str, **params: object) -> list[StepRecord]:
        """The same for a statement that answers rows of steps."""
        return [to_step(row) for row in await self.fetch(statement, **params)]

    async def workflows(self, statement: str, **params: object) -> list[WorkflowRecord]:
        """The same for a statement that answers rows of workflows."""
        return [to_workflow(row) for row in await self.fetch(statement, **params)]

    async def graph(self, definition_id: int) -> Graph:
        """The graph of a definition."""
        return await self._jobs.graph(self._tx, definition_id)

    async def definition_id(self, definition: Definition) -> int:
        """The number of a definition. A new definition is written."""
        return await self._jobs.definition_id(self._tx, definition, self._at)

    async def take_ids(self, count: int) -> list[int]:
        """Ids that no other job will have."""
        return await self._jobs.take_ids(self._tx, count)

    async def insert_steps(self, steps: Sequence[StepRecord]) -> None:
        """Write new rows."""
        await self._tx.each("insert_steps", [_record(step) for step in steps])

    async def put_steps(self, steps: Sequence[StepRecord]) -> None:
        """Write rows that have changed."""
        await self._tx.each("put_steps", [_record(step) for step in sorted(steps, key=_by_id)])

    async def put_workflows(self, workflows: Sequence[WorkflowRecord]) -> None:
        """The same for workflows."""
        await self._tx.each("put_workflows", [_state(each) for each in sorted(workflows, key=_by_id)])

    async def begin(self, workflows: Sequence[WorkflowRecord]) -> set[int]:
        """Write new workflows; answer the ids that were new."""
        made = await self._tx.each("start_workflows", [_new(each) for each in workflows], at=self._at)
        return {row["id"] for row in made}

    async def insert_jobs(self, jobs: Sequence[tuple[StepRecord, NewJob]]) -> None:
        """Put the jobs of steps into their queues."""
        await self._jobs.insert(self._tx, jobs, self._at)

    async def cancel(self, job_ids: Sequence[int]) -> None:
        """Cancel jobs."""
        await self.fetch("cancel_jobs", ids=list(job_ids))

    async def finish(self, ended: Sequence[Resolution]) -> set[int]:
        """Settle the jobs of workflows that have ended; answer the ids of the jobs that were live."""
        roots = [
            {
                "id": each.workflow.id,
                "verdict": ROOT_VERDICT[each.workflow.state],
                "started_at": each.workflow.started_at,
                "result": each.result,
                "error": self._noted(each.failure),
            }
            for each in sorted(ended, key=lambda each: each.workflow.id)
        ]
        return {row["job_id"] for row in await self._tx.each("finish_roots", roots, at=self._at)}

    async def revive(self, job_ids: Sequence[int]) -> None:
        """Put jobs back into their queues: from dead letters, or from cancelled runs."""
        back = {row["id"] for row in await self.fetch("revive_dead", ids=list(job_ids))}
        await self.fetch("revive_cancelled", ids=sorted(set(job_ids) - back))

    async def revive_root(self, workflow: WorkflowRecord) -> bool:
        """Put the workflow's own job back into the queue, unless it is live. There it waits for the end of
        the workflow. False when the job is not on record any more."""
        there = await self.fetch("live_holders", ids=[workflow.id])
        return bool(there or await self.fetch("revive_root", id=workflow.id, parent_id=workflow.parent_id))

    def _noted(self, failure: Failure | None) -> str | None:
        """A failure with the present moment; the statement adds the attempt."""
        return None if failure is None else written(replace(failure, at=self.now))


async def nudge(session: WorkflowSession, workflow_ids: Iterable[int]) -> None:
    """Make the next pass look at these workflows: a step may be due."""
    await session.fetch("nudge", ids=sorted(workflow_ids))


def definition_text(definition: Definition) -> tuple[bytes, str]:
    """The digest of a definition, which identifies it, and its text."""
    text = _encode(definition)
    return hashlib.sha256(text).digest(), text.decode()


def read_definition(text: str) -> Definition:
    """A definition from its text."""
    try:
        return _decode(text)
    except msgspec.MsgspecError as error:
        raise Unreadable("definition of a workflow", str(error)) from error


def _record(step: StepRecord) -> dict[str, object]:
    """The row of a step."""
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
        "ended_at": step.ended_at,
    }


def _state(workflow: WorkflowRecord) -> dict[str, object]:
    """The columns of a workflow that may change."""
    return {
        "id": workflow.id,
        "state": WORKFLOW_CODE[workflow.state],
        "nodes_left": workflow.left,
        "nodes_failed": workflow.failed,
        "stopping": workflow.stopping,
        "paused_at": workflow.paused_at,
        "ended_at": workflow.ended_at,
    }


def _new(workflow: WorkflowRecord) -> dict[str, object]:
    """The row of a new workflow."""
    return {
        "id": workflow.id,
        "name": workflow.name,
        "definition_id": workflow.definition_id,
        "parent_id": workflow.parent_id,
        "forked_from": workflow.forked_from,
        "params": workflow.params,
        # As text, because PostgreSQL has no array of arrays with different lengths.
        "step_ids": written(workflow.step_ids),
        "nodes_left": workflow.left,
    }
