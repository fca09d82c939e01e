"""Workflows on PostgreSQL: the transactions around what is written once for both dialects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mainspring.model.workflow import Resolved
from mainspring.store.ports import Stamp
from mainspring.store.postgres.jobs import PostgresJobs
from mainspring.store.postgres.workflow_session import PostgresWorkflowReader, PostgresWorkflowSession
from mainspring.store.workflows.calls import WorkflowCalls
from mainspring.store.workflows.resolve import resolve

T = TypeVar("T")


class PostgresWorkflows(PostgresJobs, WorkflowCalls):
    """WorkflowStore on PostgreSQL."""

    async def resolve(self, *, limit: int, at: Stamp) -> Resolved:
        [row] = await self._database.relaxed("any_endings")
        if not row["there"]:
            return Resolved()
        done = await self._within(lambda session: resolve(session, limit), at)
        # Somebody else has the workflows of what is left in hand.
        return done if done.taken else Resolved(busy=True)

    async def _within(
        self, work: Callable[[PostgresWorkflowSession], Coroutine[Any, Any, T]], at: Stamp
    ) -> T:
        async with self._database.nesting("workflow") as transaction:
            answer = await work(await self._workflow_session(transaction, at))
        self._hints.put_back()
        self._notifier.poke()
        return answer

    async def _read(self, work: Callable[[PostgresWorkflowReader], Coroutine[Any, Any, T]]) -> T:
        return await work(PostgresWorkflowReader(self._database, self._definitions))
