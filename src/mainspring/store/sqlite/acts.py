"""The log of acts on SQLite, where one transaction writes at a time: entries cannot but follow each other."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from mainspring.model.act import Act, ActFilter, ActPhase, NewAct
from mainspring.store.chaining import chained, page_of
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, moment


class SQLiteActs:
    """ActStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append_acts(self, acts: Sequence[NewAct], *, at: Stamp) -> list[Act]:
        def work(session: Session) -> list[Act]:
            head = session.row("head")
            entries = chained(head["id"], head["digest"], acts, moment(session.now(at)))
            session.each("append_acts", [_params(entry) for entry in entries])
            if entries:
                session.change("move_head", id=entries[-1].id, digest=entries[-1].digest)
            return entries

        return await self._database.write(work, durable=True)

    async def find_acts(self, which: ActFilter) -> list[Act]:
        statement, params = page_of(which)
        found = await self._database.read(lambda session: session.rows(statement, **params))
        return [_act(row) for row in found]

    async def act_ends(self, order_ids: Sequence[int]) -> dict[int, Act]:
        found = await self._database.read(lambda session: session.rows("act_ends", ids=listed(order_ids)))
        return {row["order_id"]: _act(row) for row in found}

    async def acts_after(self, act_id: int, *, limit: int) -> list[Act]:
        found = await self._database.read(
            lambda session: session.rows("acts_after", after=act_id, limit=limit)
        )
        return [_act(row) for row in found]

    async def acts_head(self) -> tuple[int, bytes]:
        row = await self._database.read(lambda session: session.row("head"))
        return row["id"], row["digest"]


def _params(act: Act) -> dict[str, object]:
    return {
        "id": act.id,
        "at": micros(act.at),
        "phase": act.phase.value,
        "act": act.act,
        "actor": act.actor,
        "role": act.role,
        "via": act.via,
        "target": act.target,
        "details": act.details,
        "order_id": act.order,
        "address": act.address,
        "digest": act.digest,
    }


def _act(row: sqlite3.Row) -> Act:
    return Act(
        id=row["id"],
        at=moment(row["at"]),
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
