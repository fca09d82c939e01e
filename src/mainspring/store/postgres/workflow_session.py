"""What workflows ask of PostgreSQL, inside one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

import msgspec

from mainspring.lifecycle.graph import Graph
from mainspring.lifecycle.resolution import Resolution
from mainspring.model.job import NewJob
from mainspring.model.workflow import Definition, Step, Workflow
from mainspring.store.codes import ROOT_VERDICT
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.definitions import Definitions
from mainspring.store.postgres.inserting import Batch, insert
from mainspring.store.postgres.rows import written
from mainspring.store.postgres.workflow_rows import (
    new_steps,
    new_workflows,
    step_states,
    to_step,
    to_workflow,
    workflow_states,
)

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

MakeBatch = Callable[[Sequence[NewJob], list[int]], Awaitable[Batch]]
_by_id = attrgetter("id")


class PostgresWorkflowReader:
    """WorkflowReader on PostgreSQL: each statement for itself, or in a transaction."""

    def __init__(self, where: Database | Transaction, definitions: Definitions, at: Stamp = None) -> None:
        self._where, self._definitions, self._at = where, definitions, at

    async def fetch(self, statement: str, **params: object) -> list[Record]:
        return await self._where.fetch(statement, **params, at=self._at)

    async def steps(self, statement: str, **params: object) -> list[Step]:
        return [to_step(row) for row in await self.fetch(statement, **params)]

    async def workflows(self, statement: str, **params: object) -> list[Workflow]:
        return [to_workflow(row) for row in await self.fetch(statement, **params)]

    async def graph(self, definition_id: int) -> Graph:
        return await self._definitions.graph(definition_id)

    def moment(self, value: datetime) -> datetime:
        return value


class PostgresWorkflowSession(PostgresWorkflowReader):
    """WorkflowSession on PostgreSQL. Names, limits and definitions are numbered on sessions of their own:
    `Database.nesting` keeps these transactions from taking all sessions from one another."""

    def __init__(
        self,
        transaction: Transaction,
        definitions: Definitions,
        batch: MakeBatch,
        take_ids: Callable[[int], Awaitable[list[int]]],
        *,
        now: datetime,
        at: Stamp,
    ) -> None:
        super().__init__(transaction, definitions, at)
        self._transaction = transaction
        self._batch, self._take_ids = batch, take_ids
        self.now = now

    async def definition_id(self, definition: Definition) -> int:
        return await self._definitions.id(definition, self._at)

    async def take_ids(self, count: int) -> list[int]:
        return await self._take_ids(count)

    async def insert_steps(self, steps: Sequence[Step]) -> None:
        if steps:
            await self.fetch("insert_steps", **new_steps(steps))

    async def put_steps(self, steps: Sequence[Step]) -> None:
        if steps:
            await self.fetch("put_steps", **step_states(sorted(steps, key=_by_id)))

    async def put_workflows(self, workflows: Sequence[Workflow]) -> None:
        if workflows:
            await self.fetch("put_workflows", **workflow_states(sorted(workflows, key=_by_id)))

    async def begin(self, workflows: Sequence[Workflow]) -> set[int]:
        return {row["id"] for row in await self.fetch("start_workflows", **new_workflows(workflows))}

    async def insert_jobs(self, jobs: Sequence[tuple[Step, NewJob]]) -> None:
        steps = [step for step, _ in jobs]
        batch = await self._batch([job for _, job in jobs], [step.id for step in steps])
        await insert(self._transaction, msgspec.structs.replace(batch, steps=steps), self._at)

    async def cancel(self, job_ids: Sequence[int]) -> None:
        await self.fetch("cancel_jobs", ids=list(job_ids))

    async def finish(self, ended: Sequence[Resolution]) -> set[int]:
        ended = sorted(ended, key=lambda each: each.workflow.id)
        rows = await self.fetch(
            "finish_roots",
            ids=[each.workflow.id for each in ended],
            verdicts=[ROOT_VERDICT[each.workflow.state] for each in ended],
            started_ats=[each.workflow.started_at for each in ended],
            results=[each.result for each in ended],
            errors=[None if each.failure is None else written(each.failure) for each in ended],
        )
        return {row["job_id"] for row in rows}

    async def revive(self, job_ids: Sequence[int]) -> None:
        back = {row["id"] for row in await self.fetch("revive_dead", ids=list(job_ids))}
        await self.fetch("revive_cancelled", ids=sorted(set(job_ids) - back))

    async def revive_root(self, workflow: Workflow) -> bool:
        there = await self.fetch("live_holders", ids=[workflow.id])
        return bool(there or await self.fetch("revive_root", id=workflow.id, parent_id=workflow.parent_id))
