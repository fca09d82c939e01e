"""Jobs and definitions of workflows on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mainspring.model.job import NewJob
from mainspring.model.workflow import Definition, StepRecord
from mainspring.rules.graph import Graph
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.definitions import Definitions
from mainspring.store.postgres.inserting import Batches, insert


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
