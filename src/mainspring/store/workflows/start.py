"""The start of workflows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from mainspring.model.run import Settlement
from mainspring.model.workflow import LIVE_STEPS, StepRecord, WorkflowRecord, WorkflowState
from mainspring.store.workflows.session import WorkflowSession, nudge

_encode = msgspec.json.Encoder(order="deterministic").encode


async def start(
    session: WorkflowSession, settlements: Iterable[Settlement], parents: Mapping[int, int | None]
) -> None:
    """Begin the workflows whose jobs have been settled as started: the jobs in `parents`, which has the outer
    workflow of each job. A workflow that exists already was begun by an earlier claim of its job."""
    begun = [(each.job_id, each.start) for each in settlements if each.start and each.job_id in parents]
    ids = await session.take_ids(sum(len(new.definition.nodes) for _, new in begun))
    workflows, steps = [], []
    for workflow_id, new in begun:
        own, ids = ids[: len(new.definition.nodes)], ids[len(new.definition.nodes) :]
        first = [
            StepRecord(id=step_id, workflow_id=workflow_id, place=place, waits=len(set(node.parents)))
            for place, (step_id, node) in enumerate(zip(own, new.definition.nodes, strict=True))
        ]
        definition_id = await session.definition_id(new.definition)
        workflows.append(
            begun_workflow(
                session,
                workflow_id,
                new.definition.name,
                definition_id,
                _encode(new.params),
                first,
                parent_id=parents[workflow_id],
            )
        )
        steps += first
    await put(session, workflows, steps)


def begun_workflow(
    session: WorkflowSession,
    workflow_id: int,
    name: str,
    definition_id: int,
    params: bytes,
    steps: Sequence[StepRecord],
    *,
    parent_id: int | None = None,
    forked_from: int | None = None,
) -> WorkflowRecord:
    """A new workflow, with a row for each node."""
    return WorkflowRecord(
        id=workflow_id,
        name=name,
        definition_id=definition_id,
        version=0,  # the definition has the version
        state=WorkflowState.RUNNING,
        params=params,
        left=sum(step.state in LIVE_STEPS for step in steps),
        failed=0,
        started_at=session.now,
        parent_id=parent_id,
        forked_from=forked_from,
        step_ids=tuple(step.id for step in steps),
    )


async def put(
    session: WorkflowSession, workflows: Sequence[WorkflowRecord], steps: Sequence[StepRecord]
) -> None:
    """Write workflows and their steps, and make the next pass look at the new workflows."""
    made = await session.begin(workflows)
    await session.insert_steps([step for step in steps if step.workflow_id in made])
    await nudge(session, made)
