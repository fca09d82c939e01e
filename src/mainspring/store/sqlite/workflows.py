"""Workflows on SQLite: the transactions around what is written once for both dialects."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from mainspring.lifecycle.graph import Graph
from mainspring.model.workflow import Resolved
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.workflow_session import SQLiteWorkflowSession
from mainspring.store.workflows.calls import WorkflowCalls
from mainspring.store.workflows.resolve import resolve
from mainspring.waiting import at_once

T = TypeVar("T")
Work = Callable[[SQLiteWorkflowSession], Coroutine[Any, Any, T]]


class SQLiteWorkflows(WorkflowCalls):
    """WorkflowStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._graphs: dict[int, Graph] = {}

    async def resolve(self, *, limit: int, at: Stamp) -> Resolved:
        if not await self._database.read(lambda session: session.row("any_endings")["there"]):
            return Resolved()
        return await self._within(lambda session: resolve(session, limit), at)

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
