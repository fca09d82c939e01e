"""Where jobs of schedules wait, on SQLite."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mainspring.model.limit import Gate
from mainspring.store.sqlite.connection import Transaction
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.limits import known_lines, line_ids


class SQLitePlaces:
    """Places on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lines(self, gates: Iterable[tuple[Gate, ...]]) -> list[int | None]:
        wanted = list(gates)
        named = [each for each in wanted if each]
        if not named:
            return [None] * len(wanted)
        # Most are on record: that is seen beside whoever writes.
        known = await self._database.read(lambda session: known_lines(session, named))
        if not all(known.values()):
            known = await self._database.write(lambda session: line_ids(session, named))
        return [known[each] if each else None for each in wanted]

    async def lanes(self, places: Collection[tuple[str, str, int]]) -> None:
        lanes = [
            {"queue": queue, "priority": priority}
            for queue, priority in sorted({(queue, priority) for queue, _, priority in places})
        ]

        async def work(tx: Transaction) -> None:
            await tx.each("add_lanes", lanes)

        # What the schedules' own transaction makes durable holds this one too.
        await self._database.within("add_lanes", work, durable=False)
