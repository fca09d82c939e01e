"""Where jobs of schedules wait, on PostgreSQL: numbers for what a schedule names."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mainspring.model.limit import Gate
from mainspring.store.postgres.lines import Lines
from mainspring.store.postgres.names import Names


class PostgresPlaces:
    """Places on PostgreSQL."""

    def __init__(self, names: Names, lines: Lines) -> None:
        self._names = names
        self._lines = lines

    async def lines(self, gates: Iterable[tuple[Gate, ...]]) -> list[int | None]:
        return await self._lines.ids(gates)

    async def lanes(self, places: Collection[tuple[str, str, int]]) -> None:
        # Inside the transaction that writes the schedules it is too late: others may wait for the names.
        queue_ids = await self._names.queue_ids(queue for queue, _, _ in places)
        await self._names.task_ids(task for _, task, _ in places)
        await self._names.ensure_lanes(
            {(queue_id, priority) for queue_id, (_, _, priority) in zip(queue_ids, places, strict=True)}
        )
