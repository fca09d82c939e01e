"""The log of acts on PostgreSQL: whoever appends holds the last entry's row until they have committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainspring.model.act import Act, ActFilter, ActPhase, NewAct
from mainspring.store.chaining import page_of
from mainspring.store.ports import Stamp
from mainspring.store.postgres.appending import Appending
from mainspring.store.postgres.connection import Database

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


class PostgresActs:
    """ActStore on PostgreSQL."""

    def __init__(self, database: Database, appending: Appending) -> None:
        self._database, self._appending = database, appending

    async def append_acts(self, acts: Sequence[NewAct], *, at: Stamp) -> list[Act]:
        return await self._appending.append(acts, at) if acts else []

    async def find_acts(self, which: ActFilter) -> list[Act]:
        statement, params = page_of(which)
        return [_act(row) for row in await self._database.fetch(statement, **params)]

    async def act_ends(self, order_ids: Sequence[int]) -> dict[int, Act]:
        found = await self._database.fetch("act_ends", ids=list(order_ids))
        return {row["order_id"]: _act(row) for row in found}

    async def acts_after(self, act_id: int, *, limit: int) -> list[Act]:
        found = await self._database.fetch("acts_after", after=act_id, limit=limit)
        return [_act(row) for row in found]

    async def acts_head(self) -> tuple[int, bytes]:
        [row] = await self._database.fetch("head")
        return row["id"], row["digest"]


def _act(row: Record) -> Act:
    return Act(
        id=row["id"],
        at=row["at"],
        phase=ActPhase(row["phase"]),
        act=row["act"],
        actor=row["actor"],
        role=row["role"],
        via=row["via"],
        target=row["target"],
        details=row["details"],
        order=row["order_id"],
        address=row["address"],
        digest=row["digest"],
    )
