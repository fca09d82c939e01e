"""Workflows: the calls of the store about workflows, and the resolution of ended steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from mainspring.model.run import Verdict
from mainspring.model.workflow import (
    Definition,
    Resolved,
    StepRecord,
    StepState,
    Stopping,
    WorkflowCommand,
    WorkflowEnd,
    WorkflowOrder,
    WorkflowRecord,
    WorkflowState,
)
from mainspring.rules.resolution import Resolution, StepEnding
from mainspring.store.audit_log import carried_out
from mainspring.store.codes import STEP, VERDICT, WORKFLOW_CODE
from mainspring.store.database import Database, Stamp, Transaction, reads
from mainspring.store.rows import reader
from mainspring.store.workflows.control import Operator, fork_from, pause_or_resume, retry_steps, stop
from mainspring.store.workflows.session import StepJobs, WorkflowSession, to_step, to_workflow

T = TypeVar("T")

_order = reader(WorkflowOrder)
LOOK = 0
"""The job id of an ending for which no job has ended: a step of the workflow may be due."""


class Workflows:
    """A workflow is started by the settlement of its own job (STARTED), which stays in the queue until
    the workflow has ended. Each end of a job of a step is recorded in the same transaction."""

    def __init__(self, database: Database, jobs: StepJobs) -> None:
        self._database, self._jobs = database, jobs

    async def resolve(self, *, limit: int, at: Stamp) -> Resolved:
        """Resolve up to `limit` endings of steps: count them, release steps that waited for them, skip steps
        that will not run, end workflows without further steps, and settle the jobs of these workflows. This
        is one transaction, which locks the workflows. It removes the endings, or it fails and the endings
        stay."""
        [row] = await self._database.relaxed("any_endings")
        if not row["there"]:
            return Resolved()
        done = await self._database.within(
            "workflow", self._work(lambda session: _resolve(session, limit), at), nested=True
        )
        # Another process has locked the workflows of the remaining endings, or has resolved all endings.
        return done if done.taken else Resolved(busy=True)

    async def pause(self, workflow_id: int, *, author: str, note: str | None, at: Stamp) -> bool:
        """Release no further steps. Steps whose jobs are in the queue run. False when the workflow has ended,
        is being stopped, or is paused already."""
        operator = Operator(author=author, note=note)
        return await self._ordered(
            lambda s: pause_or_resume(s, workflow_id, WorkflowCommand.PAUSED, operator), at
        )

    async def resume(self, workflow_id: int, *, author: str, note: str | None, at: Stamp) -> bool:
        """End the pause; False when the workflow is not paused."""
        operator = Operator(author=author, note=note)
        return await self._ordered(
            lambda s: pause_or_resume(s, workflow_id, WorkflowCommand.RESUMED, operator), at
        )

    async def stop(
        self, workflow_id: int, stopping: Stopping, *, author: str, note: str | None, at: Stamp
    ) -> bool:
        """End the workflow as cancelled. The jobs of its steps are cancelled, also running jobs. Steps that
        always run, and steps that undo, still run, unless the workflow is killed. False when the workflow has
        ended."""
        operator = Operator(author=author, note=note)
        return await self._ordered(lambda s: stop(s, workflow_id, stopping, operator), at)

    async def retry(
        self, workflow_id: int, *, steps: Sequence[str] | None, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        """Run failed steps again, these or all, and the steps after them; answer the names of the failed
        steps. The answer is empty, and nothing changes, when no such step failed. It raises UsageError when
        the workflow has been undone."""
        operator = Operator(author=author, note=note)
        return await self._ordered(lambda s: retry_steps(s, workflow_id, steps, operator), at)

    async def fork(self, workflow_id: int, step: str, *, author: str, note: str | None, at: Stamp) -> int:
        """Start a new workflow of the same definition and parameters that has the results of the steps
        before this step, and runs the other steps again; answer its id. It raises NotFound."""
        operator = Operator(author=author, note=note)
        return await self._ordered(lambda s: fork_from(s, workflow_id, step, operator), at)

    @reads
    async def get(self, workflow_id: int) -> WorkflowRecord | None:
        """One workflow."""
        found = await self._database.fetch("workflows_by_id", ids=[workflow_id])
        return to_workflow(found[0]) if found else None

    @reads
    async def find(
        self, *, name: str | None, state: WorkflowState | None, before: int | None, limit: int
    ) -> list[WorkflowRecord]:
        """Workflows before this id, newest first."""
        code = None if state is None else WORKFLOW_CODE[state]
        found = await self._database.fetch(
            "list_workflows", name=name, state=code, before=before, limit=limit
        )
        return [to_workflow(row) for row in found]

    @reads
    async def definition(self, definition_id: int) -> Definition:
        """The graph that a workflow follows."""
        return (await self._jobs.graph(self._database, definition_id)).definition

    @reads
    async def steps_of(
        self, workflow_id: int, *, place: int | None = None, first: int = 0, most: int
    ) -> list[StepRecord]:
        """The steps of a workflow in the order of the definition, of one node or of all nodes. The items of a
        map come after the map. The answer has `most` steps from the `first` on."""
        found = await self._database.fetch(
            "steps_of", workflow_id=workflow_id, place=place, first=first, most=most
        )
        return [to_step(row) for row in found]

    @reads
    async def step_counts(self, workflow_id: int) -> dict[int, dict[StepState, int]]:
        """The number of items of each map by state, by place."""
        counts: dict[int, dict[StepState, int]] = {}
        for row in await self._database.fetch("step_counts", workflow_id=workflow_id):
            counts.setdefault(row["place"], {})[STEP[row["state"]]] = row["steps"]
        return counts

    @reads
    async def lost_items(self, workflow_id: int, *, most: int) -> list[StepRecord]:
        """Items of maps that failed or were cancelled, the first `most` of each map, in order."""
        found = await self._database.fetch("lost_items", workflow_id=workflow_id, most=most)
        return [to_step(row) for row in found]

    @reads
    async def step(self, step_id: int) -> StepRecord | None:
        """One step or item, by the id of its job, also if the job is not made yet."""
        found = await self._database.fetch("steps_by_id", ids=[step_id])
        return to_step(found[0]) if found else None

    @reads
    async def orders(self, workflow_id: int) -> list[WorkflowOrder]:
        """The orders of operators on a workflow, oldest first."""
        return [_order(row) for row in await self._database.fetch("orders", workflow_id=workflow_id)]

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete workflows that ended before this moment, with their steps and orders, `limit` at a time;
        answer how many workflows were deleted."""
        gone = 0
        while page := await self._database.fetch("old_workflows", before=before, limit=limit):
            gone += len(await self._database.fetch("prune_workflows", ids=[row["id"] for row in page]))
        return gone

    async def _ordered(self, work: Callable[[WorkflowSession], Coroutine[Any, Any, T]], at: Stamp) -> T:
        """Carry out an order in one transaction, and send a hint to workers when it has committed."""
        return await carried_out(self._database, "workflow", self._work(work, at), nested=True)

    def _work(
        self, work: Callable[[WorkflowSession], Coroutine[Any, Any, T]], at: Stamp
    ) -> Callable[[Transaction], Coroutine[Any, Any, T]]:
        async def inside(tx: Transaction) -> T:
            answer = await work(await WorkflowSession.of(tx, self._jobs, at))
            tx.hint(earlier=True)
            return answer

        return inside


async def _resolve(session: WorkflowSession, limit: int) -> Resolved:
    """Resolve endings of workflows that no other transaction has locked."""
    taken: dict[int, list[int]] = defaultdict(list)
    rows = await session.fetch("take_endings", limit=limit)
    for row in rows:
        taken[row["workflow_id"]].append(row["job_id"])
    workflows = await session.workflows("workflows_by_id", ids=sorted(taken))
    endings = await _endings(session, sorted({row["job_id"] for row in rows} - {LOOK}))
    passes = [
        await _begun(session, workflow, taken[workflow.id], endings)
        for workflow in workflows
        if workflow.state is WorkflowState.RUNNING  # a step that ends after its workflow changes nothing
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
    """How each job ended. If a job has several rows, the last row counts."""
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
    """Why the workflow's own job has ended. If the outer workflow was killed, this workflow is killed too."""
    if ending.verdict is Verdict.DEAD:
        return Stopping.EXPIRED
    outer = [] if workflow.parent_id is None else [workflow.parent_id]
    killed = any(
        each.stopping is Stopping.KILLED for each in await session.workflows("workflows_by_id", ids=outer)
    )
    return Stopping.KILLED if killed else Stopping.CANCELLED


async def _go(session: WorkflowSession, passes: Sequence[Resolution]) -> None:
    """Read the rows that these resolutions need, for all at the same time, until no resolution needs more."""
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
    # The workflows are written before their jobs are settled. Otherwise the end of such a job would look like
    # a cancel.
    await session.put_workflows([each.workflow for each in passes])
    await _finish(session, [each for each in passes if each.workflow.state is not WorkflowState.RUNNING])


async def _finish(session: WorkflowSession, ended: Sequence[Resolution]) -> None:
    if not ended:
        return
    settled = await session.finish(ended)
    # A cancel or a deadline ended the job of such a workflow meanwhile, and decides how the workflow ends.
    # The ending is recorded, and the next pass finds it.
    robbed = [each for each in ended if each.workflow.id not in settled and each.workflow.stopping is None]
    for each in robbed:
        each.reopen()
    await session.put_workflows([each.workflow for each in robbed])
