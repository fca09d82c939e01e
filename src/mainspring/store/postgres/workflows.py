"""Workflows on PostgreSQL: each call one transaction around what is written once for both dialects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from mainspring.model.workflow import (
    Act,
    Definition,
    Resolved,
    Step,
    StepState,
    Stopping,
    Workflow,
    WorkflowAct,
    WorkflowState,
)
from mainspring.store.codes import STEP, WORKFLOW_CODE
from mainspring.store.ports import Stamp
from mainspring.store.postgres.jobs import PostgresJobs
from mainspring.store.postgres.workflow_rows import to_step, to_workflow
from mainspring.store.postgres.workflow_session import PostgresWorkflowSession
from mainspring.store.workflows.control import Operator, fork_from, pause_or_resume, retry_steps, stop
from mainspring.store.workflows.resolve import resolve

T = TypeVar("T")
Work = Callable[[PostgresWorkflowSession], Coroutine[Any, Any, T]]


class PostgresWorkflows(PostgresJobs):
    """WorkflowStore on PostgreSQL."""

    async def resolve(self, *, limit: int, at: Stamp) -> Resolved:
        [row] = await self._database.relaxed("any_endings")
        if not row["there"]:
            return Resolved()
        done = await self._within(lambda session: resolve(session, limit), at)
        # Somebody else has the workflows of what is left in hand.
        return done if done.taken else Resolved(busy=True)

    async def pause_workflow(self, workflow_id: int, *, author: str, note: str | None, at: Stamp) -> bool:
        operator = Operator(author=author, note=note)
        return await self._within(lambda s: pause_or_resume(s, workflow_id, Act.PAUSED, operator), at)

    async def resume_workflow(self, workflow_id: int, *, author: str, note: str | None, at: Stamp) -> bool:
        operator = Operator(author=author, note=note)
        return await self._within(lambda s: pause_or_resume(s, workflow_id, Act.RESUMED, operator), at)

    async def stop_workflow(
        self, workflow_id: int, stopping: Stopping, *, author: str, note: str | None, at: Stamp
    ) -> bool:
        operator = Operator(author=author, note=note)
        return await self._within(lambda s: stop(s, workflow_id, stopping, operator), at)

    async def retry_workflow(
        self, workflow_id: int, *, steps: Sequence[str] | None, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        operator = Operator(author=author, note=note)
        return await self._within(lambda s: retry_steps(s, workflow_id, steps, operator), at)

    async def fork_workflow(
        self, workflow_id: int, step: str, *, author: str, note: str | None, at: Stamp
    ) -> int:
        operator = Operator(author=author, note=note)
        return await self._within(lambda s: fork_from(s, workflow_id, step, operator), at)

    async def workflow(self, workflow_id: int) -> Workflow | None:
        found = await self._database.fetch("workflows_by_id", ids=[workflow_id])
        return to_workflow(found[0]) if found else None

    async def workflows(
        self, *, name: str | None, state: WorkflowState | None, before: int | None, limit: int
    ) -> list[Workflow]:
        code = None if state is None else WORKFLOW_CODE[state]
        which = {"name": name, "state": code, "before": before}
        found = await self._database.fetch("list_workflows", **which, limit=limit)
        return list(map(to_workflow, found))

    async def definition(self, definition_id: int) -> Definition:
        return (await self._definitions.graph(definition_id)).definition

    async def steps_of(
        self, workflow_id: int, *, place: int | None = None, first: int = 0, most: int
    ) -> list[Step]:
        which = {"workflow_id": workflow_id, "place": place, "first": first, "most": most}
        return list(map(to_step, await self._database.fetch("steps_of", **which)))

    async def step_counts(self, workflow_id: int) -> dict[int, dict[StepState, int]]:
        counts: dict[int, dict[StepState, int]] = {}
        for row in await self._database.fetch("step_counts", workflow_id=workflow_id):
            counts.setdefault(row["place"], {})[STEP[row["state"]]] = row["steps"]
        return counts

    async def lost_items(self, workflow_id: int, *, most: int) -> list[Step]:
        found = await self._database.fetch("lost_items", workflow_id=workflow_id, most=most)
        return list(map(to_step, found))

    async def workflow_step(self, step_id: int) -> Step | None:
        found = await self._database.fetch("steps_by_id", ids=[step_id])
        return to_step(found[0]) if found else None

    async def acts(self, workflow_id: int) -> list[WorkflowAct]:
        return [
            WorkflowAct(
                workflow_id=row["workflow_id"],
                at=row["at"],
                act=Act(row["act"]),
                author=row["author"],
                note=row["note"],
            )
            for row in await self._database.fetch("acts", workflow_id=workflow_id)
        ]

    async def workflow_of(self, job_id: int) -> int | None:
        found = await self._database.fetch("workflow_of_job", id=job_id)
        return found[0]["workflow_id"] if found else None

    async def _within(self, work: Work[T], at: Stamp) -> T:
        async with self._database.nesting("workflow") as transaction:
            answer = await work(await self._workflow_session(transaction, at))
        self._hints.forget()
        self._notifier.poke()
        return answer
