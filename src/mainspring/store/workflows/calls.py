"""WorkflowStore but for how a dialect opens a transaction: each call, written once for both."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from mainspring.model.workflow import (
    Act,
    Definition,
    Step,
    StepState,
    Stopping,
    Workflow,
    WorkflowAct,
    WorkflowState,
)
from mainspring.store.codes import STEP, WORKFLOW_CODE
from mainspring.store.ports import Stamp
from mainspring.store.workflows.control import Operator, fork_from, pause_or_resume, retry_steps, stop
from mainspring.store.workflows.session import WorkflowReader, WorkflowSession

T = TypeVar("T")


class WorkflowCalls:
    """What a store is asked of workflows, besides `resolve`."""

    @abstractmethod
    async def _within(self, work: Callable[[WorkflowSession], Coroutine[Any, Any, T]], at: Stamp) -> T:
        """Do this in one transaction, and wake those who may have something to do after it."""

    @abstractmethod
    async def _read(self, work: Callable[[WorkflowReader], Coroutine[Any, Any, T]]) -> T:
        """Ask this."""

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
        return await self._read(lambda s: _acts(s, workflow_id))


async def _acts(reader: WorkflowReader, workflow_id: int) -> list[WorkflowAct]:
    return [
        WorkflowAct(
            workflow_id=row["workflow_id"],
            at=reader.moment(row["at"]),
            act=Act(row["act"]),
            author=row["author"],
            note=row["note"],
        )
        for row in await reader.fetch("acts", workflow_id=workflow_id)
    ]
