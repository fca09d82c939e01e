"""Which line a job stands in, by the gates it must pass."""

from __future__ import annotations

from collections.abc import Iterable

from mainspring.model.limit import Gate
from mainspring.store.admitting import distinct, written
from mainspring.store.postgres.connection import Database

MOST_KNOWN = 100_000


class Lines:
    """A cache: a line, once written, keeps its number and its gates for ever."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[Gate, ...], int] = {}

    async def ids(self, gates: Iterable[tuple[Gate, ...]]) -> list[int | None]:
        """The line of each, made where it is new; None for jobs without gates."""
        wanted = list(gates)
        combinations, every = distinct(each for each in wanted if each not in self._known)
        if combinations:
            await self._learn(combinations, every)
        return [self._known[each] if each else None for each in wanted]

    async def _learn(self, combinations: list[tuple[Gate, ...]], every: list[Gate]) -> None:
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
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
        self._known |= {each: numbers[text] for each, text in texts.items()}
