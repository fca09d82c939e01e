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
