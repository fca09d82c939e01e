"""Workflows on SQLite: each call one transaction around what is written once for both dialects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from mainspring.lifecycle.graph import Graph
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
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import moment
from mainspring.store.sqlite.workflow_session import SQLiteWorkflowSession
from mainspring.store.workflows.control import Operator, fork_from, pause_or_resume, retry_steps, stop
from mainspring.store.workflows.resolve import resolve
from mainspring.waiting import at_once

T = TypeVar("T")
Work = Callable[[SQLiteWorkflowSession], Coroutine[Any, Any, T]]


class SQLiteWorkflows:
    """WorkflowStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._graphs: dict[int, Graph] = {}

    async def resolve(self, *, limit: int, at: Stamp) -> Resolved:
        if not await self._database.read(lambda session: session.row("any_endings")["there"]):
            return Resolved()
        return await self._within(lambda session: resolve(session, limit), at)

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
        found = await self._read(lambda s: s.workflows("workflows_by_id", ids=[workflow_id]))
        return found[0] if found else None

    async def workflows(
        self, *, name: str | None, state: WorkflowState | None, before: int | None, limit: int
    ) -> list[Workflow]:
        code = None if state is None else WORKFLOW_CODE[state]
        return await self._read(
            lambda s: s.workflows("list_workflows", name=name, state=code, before=before, limit=limit)
        )

    async def definition(self, definition_id: int) -> Definition:
        return (await self._read(lambda s: s.graph(definition_id))).definition

    async def steps_of(
        self, workflow_id: int, *, place: int | None = None, first: int = 0, most: int
    ) -> list[Step]:
        which = {"workflow_id": workflow_id, "place": place, "first": first, "most": most}
        return await self._read(lambda s: s.steps("steps_of", **which))

    async def step_counts(self, workflow_id: int) -> dict[int, dict[StepState, int]]:
        counts: dict[int, dict[StepState, int]] = {}
        for row in await self._read(lambda s: s.fetch("step_counts", workflow_id=workflow_id)):
            counts.setdefault(row["place"], {})[STEP[row["state"]]] = row["steps"]
        return counts

    async def lost_items(self, workflow_id: int, *, most: int) -> list[Step]:
        return await self._read(lambda s: s.steps("lost_items", workflow_id=workflow_id, most=most))

    async def workflow_step(self, step_id: int) -> Step | None:
        found = await self._read(lambda s: s.steps("steps_by_id", ids=[step_id]))
        return found[0] if found else None

    async def acts(self, workflow_id: int) -> list[WorkflowAct]:
        return [
            WorkflowAct(
                workflow_id=row["workflow_id"],
                at=moment(row["at"]),
                act=Act(row["act"]),
                author=row["author"],
                note=row["note"],
            )
            for row in await self._read(lambda s: s.fetch("acts", workflow_id=workflow_id))
        ]

    async def workflow_of(self, job_id: int) -> int | None:
        found = await self._read(lambda s: s.fetch("workflow_of_job", id=job_id))
        return found[0]["workflow_id"] if found else None

    async def _within(self, work: Work[T], at: Stamp) -> T:
        def written(session: Session) -> T:
            answer = at_once(work(SQLiteWorkflowSession(session, session.now(at), self._graphs)))
            session.hint()
            return answer

        return await self._database.write(written)

    async def _read(self, work: Work[T]) -> T:
        return await self._database.read(
            lambda session: at_once(work(SQLiteWorkflowSession(session, 0, self._graphs)))
        )
