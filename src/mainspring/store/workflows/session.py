"""What a dialect provides for workflows, inside one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol

from mainspring.lifecycle.graph import Graph
from mainspring.lifecycle.resolution import Resolution
from mainspring.model.job import NewJob
from mainspring.model.workflow import Definition, Step, Workflow


class WorkflowReader(Protocol):
    """Named statements of `workflows.sql`. SQLite's coroutines never wait, so that one thread can run them
    to their end."""

    async def fetch(self, statement: str, **params: object) -> list[Any]:
        """Run a statement, which may also name the moment; answer its rows."""

    async def steps(self, statement: str, **params: object) -> list[Step]:
        """The same for one that answers rows of steps."""

    async def workflows(self, statement: str, **params: object) -> list[Workflow]:
        """The same for one that answers rows of workflows."""

    async def graph(self, definition_id: int) -> Graph:
        """The graph of a definition."""

    def moment(self, value: Any) -> datetime:
        """A moment out of a row."""


class WorkflowSession(WorkflowReader, Protocol):
    """The same inside a transaction that writes, and what cannot be said in the same words in both
    dialects."""

    now: datetime

    async def definition_id(self, definition: Definition) -> int:
        """The number of a definition, given where it is new."""

    async def take_ids(self, count: int) -> list[int]:
        """Ids that no other job will have."""

    async def insert_steps(self, steps: Sequence[Step]) -> None:
        """Write new rows."""

    async def put_steps(self, steps: Sequence[Step]) -> None:
        """Write rows that have changed."""

    async def put_workflows(self, workflows: Sequence[Workflow]) -> None:
        """The same for workflows."""

    async def begin(self, workflows: Sequence[Workflow]) -> set[int]:
        """Write new workflows; answer which were not there before."""

    async def insert_jobs(self, jobs: Sequence[tuple[Step, NewJob]]) -> None:
        """Put the jobs of steps into their queues."""

    async def cancel(self, job_ids: Sequence[int]) -> None:
        """Take jobs out of the queue for good."""

    async def finish(self, ended: Sequence[Resolution]) -> set[int]:
        """Settle the jobs of workflows that have ended; answer which were there."""

    async def revive(self, job_ids: Sequence[int]) -> None:
        """Put jobs back into their queues: from their dead letters, or as they were when cancelled."""

    async def revive_root(self, workflow: Workflow) -> bool:
        """Put the job of a workflow back to where it waits for the workflow to end, unless it is there;
        False when nothing of it is on record."""


async def nudge(session: WorkflowSession, workflow_ids: Iterable[int]) -> None:
    """Have these looked at: something may be due in them."""
    await session.fetch("nudge", ids=sorted(workflow_ids))
