"""Jobs and definitions of workflows on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mainspring.model.job import NewJob
from mainspring.model.workflow import Definition, StepRecord
from mainspring.rules.graph import Graph
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.inserting import Batches, insert
from mainspring.store.workflows.session import definition_text, read_definition

MOST_KNOWN = 1000


class PostgresStepJobs:
    """StepJobs on PostgreSQL. Names, limits, ids and definitions are asked for on sessions of their own:
    `Database.nesting` keeps these transactions from taking all sessions from one another."""

    def __init__(self, definitions: Definitions, batches: Batches) -> None:
        self._definitions, self._batches = definitions, batches

    async def graph(self, tx: Transaction | Database, definition_id: int) -> Graph:
        return await self._definitions.graph(definition_id)

    async def definition_id(self, tx: Transaction, definition: Definition, at: Stamp) -> int:
        return await self._definitions.id(definition, at)

    async def take_ids(self, tx: Transaction, count: int) -> list[int]:
        return await self._batches.take_ids(count)

    async def insert(self, tx: Transaction, jobs: Sequence[tuple[StepRecord, NewJob]], at: Stamp) -> None:
        steps = [step for step, _ in jobs]
        batch = await self._batches.make([job for _, job in jobs], [step.id for step in steps])
        await insert(tx, msgspec.structs.replace(batch, steps=steps), at)


class Definitions:
    """A cache of definitions: a written definition never changes, and keeps its number. It uses a separate
    session, so that a number stays on record even if the transaction that asked for it fails."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids: dict[bytes, int] = {}
        self._graphs: dict[int, Graph] = {}
        database.lives.on_change(self._ids.clear)
        database.lives.on_change(self._graphs.clear)

    async def id(self, definition: Definition, at: Stamp) -> int:
        """The number of a definition, given where it is new."""
        digest, text = definition_text(definition)
        if len(self._ids) > MOST_KNOWN:
            self._ids.clear()
        which = {"name": definition.name, "digest": digest}
        while digest not in self._ids:
            # No row from the second: another process wrote this one, or took the version, in between.
            found = await self._database.fetch("definition_id", **which)
            found = found or await self._database.fetch("put_definition", **which, definition=text, at=at)
            if found:
                self._ids[digest] = found[0]["id"]
        return self._ids[digest]

    async def graph(self, definition_id: int) -> Graph:
        """The graph of a definition."""
        if definition_id not in self._graphs:
            if len(self._graphs) > MOST_KNOWN:
                self._graphs.clear()
            [row] = await self._database.fetch("definitions", ids=[definition_id])
            self._graphs[definition_id] = Graph(read_definition(row["definition"]))
        return self._graphs[definition_id]
