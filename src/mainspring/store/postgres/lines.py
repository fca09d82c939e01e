"""Which line a job stands in, by the gates it must pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mainspring.model.limit import Gate
from mainspring.store.admitting import distinct, written
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.names import Names

MOST_KNOWN = 100_000


class Lines:
    """A cache: a line, once written, keeps its number and its gates for ever."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[Gate, ...], int] = {}
        database.lives.on_change(self._known.clear)

    async def ids(self, gates: Iterable[tuple[Gate, ...]]) -> list[int | None]:
        """The line of each, made where it is new; None for jobs without gates."""
        wanted = list(gates)
        known = {each: line for each in wanted if (line := self._known.get(each)) is not None}
        combinations, every = distinct(each for each in wanted if each not in known)
        if combinations:
            known |= await self._learn(combinations, every)
        return [known[each] if each else None for each in wanted]

    async def _learn(
        self, combinations: list[tuple[Gate, ...]], every: list[Gate]
    ) -> dict[tuple[Gate, ...], int]:
        every.sort(
            key=lambda gate: (gate.name, gate.key)
        )  # two that learn the same must not wait for each other
        names, keys = [gate.name for gate in every], [gate.key for gate in every]
        await self._database.fetch(
            "put_gates",
            names=names,
            keys=keys,
            concurrencies=[gate.concurrency for gate in every],
            rates=[gate.rate for gate in every],
            periods=[gate.period for gate in every],
            bursts=[gate.burst for gate in every],
            windows=[gate.window for gate in every],
        )
        found = await self._database.fetch("gate_ids", names=names, keys=keys)
        ids = {(row["name"], row["key"]): row["id"] for row in found}
        texts = {each: written(ids[g.name, g.key] for g in each) for each in combinations}
        await self._database.fetch("put_lines", gates=sorted(set(texts.values())))
        lines = await self._database.fetch("line_ids", gates=sorted(set(texts.values())))
        numbers = {row["gates"]: row["id"] for row in lines}
        learnt = {each: numbers[text] for each, text in texts.items()}
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known |= learnt
        return learnt


class PostgresPlaces:
    """Where jobs of schedules wait: numbers for the limits and the queues that a schedule names."""

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
