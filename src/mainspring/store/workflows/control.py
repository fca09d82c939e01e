"""What operators do to workflows: each act, and the note of it, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from mainspring.errors import NotFound, UsageError
from mainspring.model.workflow import (
    NodeKind,
    StepRecord,
    StepState,
    Stopping,
    WorkflowCommand,
    WorkflowRecord,
    WorkflowState,
)
from mainspring.rules.graph import Graph, failed_places, forked, retried
from mainspring.store.workflows.session import WorkflowSession, nudge
from mainspring.store.workflows.start import begun_workflow, put

LONGEST_NOTE = 500


class Operator(msgspec.Struct, frozen=True, kw_only=True):
    """Who orders, and what they say about it."""

    author: str
    note: str | None = None

    async def sign(
        self, session: WorkflowSession, workflow_id: int, action: WorkflowCommand, note: str | None = None
    ) -> None:
        """Record the order."""
        told = (self.note or note or "")[:LONGEST_NOTE] or None
        await session.fetch(
            "add_order", workflow_id=workflow_id, action=action, author=self.author, note=told
        )


async def pause_or_resume(
    session: WorkflowSession,
    workflow_id: int,
    action: Literal[WorkflowCommand.PAUSED, WorkflowCommand.RESUMED],
    operator: Operator,
) -> bool:
    """Hold back further steps, or release those that were."""
    statement = "pause_workflow" if action is WorkflowCommand.PAUSED else "resume_workflow"
    if not await session.fetch(statement, id=workflow_id):
        return False
    await operator.sign(session, workflow_id, action)
    await nudge(session, [workflow_id])
    return True


async def stop(session: WorkflowSession, workflow_id: int, stopping: Stopping, operator: Operator) -> bool:
    """Cancel it: its own job goes now, those of its steps with the next pass."""
    if not await session.fetch("stop_workflow", id=workflow_id, stopping=stopping):
        return False
    await session.cancel([workflow_id])
    await operator.sign(session, workflow_id, WorkflowCommand.CANCELLED)
    await nudge(session, [workflow_id])
    return True


async def retry_steps(
    session: WorkflowSession, workflow_id: int, names: Sequence[str] | None, operator: Operator
) -> list[str]:
    """Run failed steps again, and what came after them."""
    workflow, graph = await _locked(session, workflow_id)
    if workflow.parent_id is not None:
        # That one would not hear of how it ends now.
        raise UsageError(f"workflow {workflow_id} is a step of workflow {workflow.parent_id}: retry that one")
    return await _retry(session, workflow, graph, names, operator)


async def _retry(
    session: WorkflowSession,
    workflow: WorkflowRecord,
    graph: Graph,
    names: Sequence[str] | None,
    operator: Operator,
) -> list[str]:
    workflow_id = workflow.id
    if workflow.state is WorkflowState.RUNNING and not await _goes_on(session, workflow):
        raise UsageError(f"workflow {workflow_id} is being stopped: retry it once it has ended")
    steps = await _nodes(session, workflow)
    failed = failed_places(steps)
    chosen = failed if names is None else failed & {_place(graph, workflow, name) for name in names}
    if names is not None and not chosen:
        return []
    items = {
        place: await session.steps("items_of", workflow_id=workflow_id, place=place)
        for place in chosen
        if graph.nodes[place].kind is NodeKind.MAP
    }
    lost = [step for place in chosen for step in (steps[place], *items.get(place, ()))]
    inner = {each.id: each for each in await session.workflows("workflows_by_id", ids=[s.id for s in lost])}
    there = {row["id"] for row in await session.fetch("revivable", ids=[step.id for step in lost])}
    plan = retried(graph, workflow, steps, items, chosen, revivable=there | inner.keys())
    if plan is None:
        return []
    for each in plan.revived:
        if each in inner and not await _retry(session, *await _locked(session, each), None, operator):
            raise UsageError(
                f"workflow {each}, a step of it, has nothing to retry: start it anew, or fork it"
            )
    await session.revive([each for each in plan.revived if each not in inner])
    fences = await session.fetch("last_fences", ids=list(plan.anew))
    await session.put_steps(plan.changed({row["job_id"]: row["fence"] for row in fences}))
    await session.fetch("drop_items", workflow_id=workflow_id, places=list(plan.emptied))
    await session.fetch("forget_checkpoints", job_ids=list(plan.anew))
    # They get jobs of the same ids again, which may die as well.
    await session.fetch("purge_dead", ids=list(plan.anew))
    await _renumber(session, plan.workflow, plan.anew)
    if not await session.revive_root(workflow):
        raise UsageError(
            f"what workflow {workflow_id} was started with is not on record any more: start it anew"
        )
    await session.put_workflows([plan.workflow])
    names = sorted(graph.nodes[place].name for place in chosen) or ["what was cut off"]
    await operator.sign(session, workflow_id, WorkflowCommand.RETRIED, ", ".join(names))
    await nudge(session, [workflow_id])
    return names


async def _goes_on(session: WorkflowSession, workflow: WorkflowRecord) -> bool:
    """Whether nobody is stopping it: by what it says, or by having taken its own job."""
    return workflow.stopping is None and bool(await session.fetch("live_holders", ids=[workflow.id]))


async def fork_from(session: WorkflowSession, workflow_id: int, step: str, operator: Operator) -> int:
    """Begin a workflow that has what the steps before this one made."""
    workflow, graph = await _locked(session, workflow_id)
    kept = forked(graph, await _nodes(session, workflow), _place(graph, workflow, step))
    [new_id] = await session.take_ids(1)
    nodes = await _renewed(session, list(kept.values()), new_id)
    items: list[StepRecord] = []
    for place, each in kept.items():
        if graph.nodes[place].kind is NodeKind.MAP and each.state is not StepState.WAITING:
            old = await session.steps("items_of", workflow_id=workflow_id, place=place)
            items += await _renewed(session, old, new_id)
    if not await session.fetch("fork_root", id=new_id, source_id=workflow_id):
        raise NotFound("job", workflow_id)
    new = begun_workflow(
        session,
        new_id,
        workflow.name,
        workflow.definition_id,
        workflow.params,
        nodes,
        forked_from=workflow_id,
    )
    await put(session, [new], [*nodes, *items])
    await operator.sign(session, new_id, WorkflowCommand.FORKED, f"from {step} of workflow {workflow_id}")
    return new_id


async def _locked(session: WorkflowSession, workflow_id: int) -> tuple[WorkflowRecord, Graph]:
    await session.fetch("lock_workflow", id=workflow_id)
    found = await session.workflows("workflows_by_id", ids=[workflow_id])
    if not found:
        raise NotFound("workflow", workflow_id)
    return found[0], await session.graph(found[0].definition_id)


async def _nodes(session: WorkflowSession, workflow: WorkflowRecord) -> dict[int, StepRecord]:
    steps = await session.steps("steps_by_id", ids=sorted(workflow.step_ids))
    return {step.place: step for step in sorted(steps, key=lambda each: each.place)}


def _place(graph: Graph, workflow: WorkflowRecord, name: str) -> int:
    place = graph.place(name)
    if place is None:
        raise NotFound(f"step of workflow {workflow.id}", name)
    return place


async def _renewed(
    session: WorkflowSession, steps: Sequence[StepRecord], workflow_id: int
) -> list[StepRecord]:
    ids = await session.take_ids(len(steps))
    return [
        msgspec.structs.replace(step, id=step_id, workflow_id=workflow_id)
        for step, step_id in zip(steps, ids, strict=True)
    ]


async def _renumber(session: WorkflowSession, workflow: WorkflowRecord, step_ids: Sequence[int]) -> None:
    """A step that is a workflow itself, and is to begin anew, is another workflow: it gets another id."""
    inner = await session.workflows("workflows_by_id", ids=list(step_ids))
    if not inner:
        return
    new = dict(zip((each.id for each in inner), await session.take_ids(len(inner)), strict=True))
    for old_id, new_id in new.items():
        await session.fetch("renumber_step", id=old_id, new_id=new_id)
    ids = [new.get(each, each) for each in workflow.step_ids]
    await session.fetch("put_step_ids", id=workflow.id, step_ids=ids)
