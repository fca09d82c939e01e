"""Appends to the log of acts on PostgreSQL: whoever's turn it is takes along all who wait.

Entries follow one another, so their commits do too, and each waits for the disk. One commit for all who wait
meanwhile takes a wait for each group and no longer for each entry, and one connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from mainspring.errors import AnswerLost, StoreError, StoreUnavailable
from mainspring.model.act import Act, NewAct
from mainspring.store.chaining import chained
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.waiting import whole

MOST = 500
"""Entries in one transaction."""


class _Waiting:
    def __init__(self, acts: Sequence[NewAct], at: Stamp) -> None:
        self.acts, self.at = acts, at
        self.done: asyncio.Future[list[Act]] = asyncio.get_running_loop().create_future()


class Appending:
    """The one line of this process; other processes meet it at the row of the last entry."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._turn = asyncio.Lock()

    async def append(self, acts: Sequence[NewAct], at: Stamp) -> list[Act]:
        """Entries as they stand, on the disk."""
        mine = _Waiting(acts, at)
        self._waiting.append(mine)
        try:
            async with self._turn:
                if not mine.done.done():
                    await whole(self._take(mine))
        except asyncio.CancelledError:
            with suppress(ValueError):  # not there: somebody has taken it along
                self._waiting.remove(mine)
            if mine.done.done() and not mine.done.cancelled():
                mine.done.exception()  # whoever cancelled us does not want to hear of it
            raise
        return await mine.done

    async def _take(self, mine: _Waiting) -> None:
        self._waiting.remove(mine)
        group, count = [mine], len(mine.acts)
        while self._waiting and count + len(self._waiting[0].acts) <= MOST:
            group.append(self._waiting.pop(0))
            count += len(group[-1].acts)
        try:
            await self._write(group)
        except (StoreUnavailable, AnswerLost) as error:
            _fail(group, error)
        except StoreError as error:
            if len(group) == 1:
                _fail(group, error)
                return
            # One of them cannot be: that must not cost the others theirs.
            for each in group:
                try:
                    await self._write([each])
                except StoreError as own:
                    _fail([each], own)

    async def _write(self, group: Sequence[_Waiting]) -> None:
        done: list[list[Act]] = []
        async with self._database.transaction("append_acts") as transaction:
            [head] = await transaction.fetch("lock_head")
            last, digest = head["id"], head["digest"]
            for each in group:
                done.append(chained(last, digest, each.acts, each.at or head["now"]))
                last, digest = done[-1][-1].id, done[-1][-1].digest
            await transaction.fetch("append_acts", **_columns([act for acts in done for act in acts]))
            await transaction.fetch("move_head", id=last, digest=digest)
        for each, acts in zip(group, done, strict=True):
            if not each.done.done():
                each.done.set_result(acts)


def _fail(group: Sequence[_Waiting], error: StoreError) -> None:
    for each in group:
        if not each.done.done():
            each.done.set_exception(error)


def _columns(entries: Sequence[Act]) -> dict[str, object]:
    return {
        "ids": [each.id for each in entries],
        "ats": [each.at for each in entries],
        "phases": [each.phase.value for each in entries],
        "acts": [each.act for each in entries],
        "actors": [each.actor for each in entries],
        "roles": [each.role for each in entries],
        "vias": [each.via for each in entries],
        "targets": [each.target for each in entries],
        "details": [each.details for each in entries],
        "orders": [each.order for each in entries],
        "addresses": [each.address for each in entries],
        "digests": [each.digest for each in entries],
    }
