"""Jobs and definitions of workflows on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.job import NewJob
from mainspring.model.workflow import Definition, StepRecord
from mainspring.rules.graph import Graph
from mainspring.store.database import Stamp
from mainspring.store.sqlite.connection import Transaction
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.inserting import insert_step_jobs
from mainspring.store.workflows.session import definition_text, read_definition


class SQLiteStepJobs:
    """StepJobs on SQLite, all of it in the transaction itself."""

    def __init__(self) -> None:
        self._graphs: dict[int, Graph] = {}
        """A cache: a definition never changes."""

    async def graph(self, tx: Transaction | Database, definition_id: int) -> Graph:
        if definition_id not in self._graphs:
            [row] = await tx.fetch("definitions", ids=[definition_id])
            self._graphs[definition_id] = Graph(read_definition(row["definition"]))
        return self._graphs[definition_id]

    async def definition_id(self, tx: Transaction, definition: Definition, at: Stamp) -> int:
        digest, text = definition_text(definition)
        which = {"name": definition.name, "digest": digest}
        found = await tx.fetch("definition_id", **which)
        found = found or await tx.fetch("put_definition", **which, definition=text, at=at)
        number: int = found[0]["id"]
        return number

    async def take_ids(self, tx: Transaction, count: int) -> list[int]:
        [row] = await tx.fetch("bump_ids", count=count)
        last: int = row["seq"]
        return list(range(last - count + 1, last + 1))

    async def insert(self, tx: Transaction, jobs: Sequence[tuple[StepRecord, NewJob]], at: Stamp) -> None:
        insert_step_jobs(tx.session, jobs, tx.now(at))
