"""What the endings of steps do to their workflows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from mainspring.model.run import Verdict
from mainspring.model.workflow import Resolved, Stopping, WorkflowEnd, WorkflowRecord, WorkflowState
from mainspring.rules.resolution import Resolution, StepEnding
from mainspring.store.codes import VERDICT
from mainspring.store.workflows.session import WorkflowSession

LOOK = 0
"""Instead of a job's id: nothing has ended, but something may be due."""


async def resolve(session: WorkflowSession, limit: int) -> Resolved:
    """Deal with endings of workflows that nobody else has in hand."""
    taken: dict[int, list[int]] = defaultdict(list)
    rows = await session.fetch("take_endings", limit=limit)
    for row in rows:
        taken[row["workflow_id"]].append(row["job_id"])
    workflows = await session.workflows("workflows_by_id", ids=sorted(taken))
    endings = await _endings(session, sorted({row["job_id"] for row in rows} - {LOOK}))
    passes = [
        await _begun(session, workflow, taken[workflow.id], endings)
        for workflow in workflows
        if workflow.state is WorkflowState.RUNNING  # whatever ends after it changes nothing
    ]
    await _go(session, passes)
    await _write(session, passes)
    return Resolved(
        taken=len(rows),
        released=sum(len(each.jobs) + len(each.items) for each in passes),
        ended=tuple(
            WorkflowEnd(workflow_id=each.workflow.id, name=each.workflow.name, state=each.workflow.state)
            for each in passes
            if each.workflow.state is not WorkflowState.RUNNING
        ),
    )


async def _endings(session: WorkflowSession, job_ids: Sequence[int]) -> dict[int, StepEnding]:
    """How each job left the queue. The last word on it comes last."""
    endings = {job_id: StepEnding(job_id=job_id) for job_id in job_ids}
    for row in await session.fetch("final_runs", ids=job_ids):
        endings[row["job_id"]] = StepEnding(
            job_id=row["job_id"], verdict=VERDICT[row["verdict"]], result=row["result"]
        )
    return endings


async def _begun(
    session: WorkflowSession,
    workflow: WorkflowRecord,
    job_ids: Sequence[int],
    endings: Mapping[int, StepEnding],
) -> Resolution:
    resolution = Resolution(workflow, await session.graph(workflow.definition_id), session.now)
    for job_id in job_ids:
        if job_id == LOOK:
            resolution.look()
        elif job_id == workflow.id:
            resolution.stop(await _why_stopped(session, workflow, endings[job_id]))
        else:
            resolution.end([endings[job_id]])
    return resolution


async def _why_stopped(session: WorkflowSession, workflow: WorkflowRecord, ending: StepEnding) -> Stopping:
    """Why its own job is gone. In a workflow that was killed, nothing more is to run either."""
    if ending.verdict is Verdict.DEAD:
        return Stopping.EXPIRED
    outer = [] if workflow.parent_id is None else [workflow.parent_id]
    killed = any(
        each.stopping is Stopping.KILLED for each in await session.workflows("workflows_by_id", ids=outer)
    )
    return Stopping.KILLED if killed else Stopping.CANCELLED


async def _go(session: WorkflowSession, passes: Sequence[Resolution]) -> None:
    """Read what they need, for all of them at once, until none needs more."""
    going = list(passes)
    while going := [each for each in going if each.need()]:
        ids = sorted({step_id for each in going for step_id in each.needed.ids})
        found = defaultdict(list)
        for step in await session.steps("steps_by_id", ids=ids) if ids else ():
            found[step.workflow_id].append(step)
        for each in going:
            each.supply(found[each.workflow.id])
            for place in each.needed.items:
                items = await session.steps("items_of", workflow_id=each.workflow.id, place=place)
                each.supply_items(place, items)
            if each.needed.live:
                each.supply_live(await session.steps("live_steps", workflow_id=each.workflow.id))


async def _write(session: WorkflowSession, passes: Sequence[Resolution]) -> None:
    await session.put_steps([step for each in passes for step in each.changed])
    jobs = [made for each in passes for made in each.jobs]
    count = sum(len(each.items) for each in passes)
    if count:
        ids = await session.take_ids(count)
        for each in passes:
            own, ids = ids[: len(each.items)], ids[len(each.items) :]
            items = each.numbered(own)
            await session.insert_steps([step for step, _ in items])
            jobs += items
    if jobs:
        await session.insert_jobs(jobs)
    cancelled = sorted(job_id for each in passes for job_id in each.cancelled)
    if cancelled:
        await session.cancel(cancelled)
    # Before the jobs of those that have ended go: that would look as if somebody had cancelled them.
    await session.put_workflows([each.workflow for each in passes])
    await _finish(session, [each for each in passes if each.workflow.state is not WorkflowState.RUNNING])


async def _finish(session: WorkflowSession, ended: Sequence[Resolution]) -> None:
    if not ended:
        return
    settled = await session.finish(ended)
    # Somebody took such a job away while we looked, by a cancel or a deadline, and that is how its workflow
    # ends: the ending of it is noted, and the next pass will find it.
    robbed = [each for each in ended if each.workflow.id not in settled and each.workflow.stopping is None]
    for each in robbed:
        each.reopen()
    await session.put_workflows([each.workflow for each in robbed])
