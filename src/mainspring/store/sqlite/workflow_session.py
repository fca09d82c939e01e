"""What workflows ask of SQLite, inside one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from mainspring.lifecycle.graph import Graph
from mainspring.lifecycle.resolution import Resolution
from mainspring.model.job import NewJob
from mainspring.model.workflow import Definition, Step, Workflow, WorkflowState
from mainspring.store.codes import ROOT_VERDICT, WORKFLOW_CODE
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.inserting import insert_step_jobs
from mainspring.store.sqlite.rows import listed, micros, moment, noted
from mainspring.store.sqlite.workflow_rows import record, to_step, to_workflow
from mainspring.store.workflows.definitions import read, written


class SQLiteWorkflowSession:
    """WorkflowSession on SQLite. Its coroutines never wait."""

    def __init__(self, session: Session, now: int, graphs: dict[int, Graph]) -> None:
        """`graphs` is a cache: a definition never changes."""
        self._session, self._now, self._graphs = session, now, graphs
        self.now = moment(now)

    async def fetch(self, statement: str, **params: object) -> list[sqlite3.Row]:
        bound = {name: _bound(value) for name, value in params.items()}
        return self._session.rows(statement, **bound, now=self._now)

    async def steps(self, statement: str, **params: object) -> list[Step]:
        return [to_step(row) for row in await self.fetch(statement, **params)]

    async def workflows(self, statement: str, **params: object) -> list[Workflow]:
        return [to_workflow(row) for row in await self.fetch(statement, **params)]

    async def graph(self, definition_id: int) -> Graph:
        if definition_id not in self._graphs:
            [row] = await self.fetch("definitions", ids=[definition_id])
            self._graphs[definition_id] = Graph(read(row["definition"]))
        return self._graphs[definition_id]

    def moment(self, value: int) -> datetime:
        return moment(value)

    async def definition_id(self, definition: Definition) -> int:
        digest, text = written(definition)
        which = {"name": definition.name, "digest": digest}
        found = await self.fetch("definition_id", **which)
        found = found or await self.fetch("put_definition", **which, definition=text)
        number: int = found[0]["id"]
        return number

    async def take_ids(self, count: int) -> list[int]:
        last: int = self._session.row("bump_ids", count=count)["seq"]
        return list(range(last - count + 1, last + 1))

    async def insert_steps(self, steps: Sequence[Step]) -> None:
        self._session.each("insert_steps", (record(step) for step in steps))

    async def put_steps(self, steps: Sequence[Step]) -> None:
        self._session.each("put_steps", (record(step) for step in steps))

    async def put_workflows(self, workflows: Sequence[Workflow]) -> None:
        self._session.each("put_workflows", (_state(each) for each in workflows))

    async def begin(self, workflows: Sequence[Workflow]) -> set[int]:
        made = [
            await self.fetch(
                "start_workflows",
                id=each.id,
                name=each.name,
                definition_id=each.definition_id,
                parent_id=each.parent_id,
                forked_from=each.forked_from,
                params=each.params,
                step_ids=each.step_ids,
                nodes_left=each.left,
            )
            for each in workflows
        ]
        return {row["id"] for rows in made for row in rows}

    async def insert_jobs(self, jobs: Sequence[tuple[Step, NewJob]]) -> None:
        insert_step_jobs(self._session, jobs, self._now)

    async def cancel(self, job_ids: Sequence[int]) -> None:
        await self.fetch("cancel_jobs", ids=job_ids)
        self._session.change("remove_jobs", ids=listed(job_ids))

    async def finish(self, ended: Sequence[Resolution]) -> set[int]:
        settled: set[int] = set()
        for each in ended:
            workflow = each.workflow
            error = None if each.failure is None else noted(each.failure, self._now)
            found = await self.fetch(
                "finish_roots",
                id=workflow.id,
                error=error,
                started_at=workflow.started_at,
                verdict=ROOT_VERDICT[workflow.state],
                result=each.result,
            )
            settled |= {row["job_id"] for row in found}
            if workflow.state is WorkflowState.FAILED:
                await self.fetch("bury_root", id=workflow.id, error=error)
        self._session.change("remove_jobs", ids=listed(settled))
        return settled

    async def revive(self, job_ids: Sequence[int]) -> None:
        back = {row["id"] for row in await self.fetch("revive_dead", ids=job_ids)}
        await self.fetch("purge_dead", ids=sorted(back))
        await self.fetch("revive_cancelled", ids=sorted(set(job_ids) - back))

    async def revive_root(self, workflow: Workflow) -> bool:
        there = await self.fetch("live_holders", ids=[workflow.id])
        there = there or await self.fetch("revive_root", id=workflow.id, parent_id=workflow.parent_id)
        await self.fetch("purge_dead", ids=[workflow.id])
        return bool(there)


def _bound(value: object) -> object:
    if isinstance(value, list | tuple):
        return listed(value)
    return micros(value) if isinstance(value, datetime) else value


def _state(workflow: Workflow) -> dict[str, object]:
    return {
        "id": workflow.id,
        "state": WORKFLOW_CODE[workflow.state],
        "nodes_left": workflow.left,
        "nodes_failed": workflow.failed,
        "stopping": workflow.stopping,
        "paused_at": micros(workflow.paused_at),
        "ended_at": micros(workflow.ended_at),
    }
