"""Limits: which keys of them there are, who holds them, and who waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from mainspring.model.limit import Admission, Gate, GateInfo
from mainspring.store.admitting import MOST_LINES, read, states_of
from mainspring.store.database import Database, Stamp, Transaction, reads


class Admitter(Protocol):
    """Lets jobs through, which each dialect does in its own way: it is done all the time."""

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        """As Limits.admit."""


class Places(Protocol):
    """Where jobs wait: in the lanes of queues, and in the lines of limits. What is new is put on record
    before the jobs or schedules are written, in a transaction of its own: others may name the same at that
    moment, and must not wait for each other."""

    async def lines(self, gates: Iterable[tuple[Gate, ...]]) -> list[int | None]:
        """The line in which jobs wait for these limits; None for jobs without limits."""

    async def lanes(self, places: Collection[tuple[str, str, int]]) -> None:
        """See to it that jobs of this queue, task and priority are looked for."""


class Limits:
    """Gates that jobs with limits must pass."""

    def __init__(self, database: Database, admitter: Admitter) -> None:
        self._database, self._admitter = database, admitter

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        """Let through, in one transaction, the jobs there is room for: one pass at a time in all processes. A
        job that is through can be claimed. Its place is free again when it ends, by whatever way, or
        goes back before its gates to be tried later. `after` is the answer of the pass before."""
        return await self._admitter.admit(after=after, at=at)

    @reads
    async def keys(
        self,
        *,
        name: str | None = None,
        key: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
        holders: int,
    ) -> list[GateInfo]:
        """Gates by name and key, those after this one, each with the first `holders` of the jobs that are
        through."""
        after_name, after_key = after or ("", "")  # no name is empty, so all of them come after that

        async def work(tx: Transaction) -> list[GateInfo]:
            found = await tx.fetch(
                "all_gates", name=name, key=key, after_name=after_name, after_key=after_key, limit=limit
            )
            return await _infos(tx, [row["id"] for row in found], holders)

        return await self._database.reading("keys", work)

    @reads
    async def keys_of(self, job_id: int, *, holders: int) -> list[GateInfo]:
        """The gates of one live job; none for one without limits."""

        async def work(tx: Transaction) -> list[GateInfo]:
            found = await tx.fetch("gates_of_job", id=job_id)
            return await _infos(tx, read(found[0]["gates"]), holders) if found else []

        return await self._database.reading("keys_of", work)


async def _infos(tx: Transaction, gate_ids: Sequence[int], most: int) -> list[GateInfo]:
    found = states_of(await tx.fetch("gates", ids=list(gate_ids)))
    held: dict[int, list[int]] = defaultdict(list)
    for row in await tx.fetch("gate_holders", gate_ids=list(gate_ids), most=most):
        held[row["gate_id"]].append(row["job_id"])
    rows = await tx.fetch("lines_of_gates", gate_ids=list(gate_ids))
    lines = {row["id"]: read(row["gates"]) for row in rows}
    waiting: dict[int, int] = defaultdict(int)
    for row in await tx.fetch("count_waiting", line_ids=sorted(lines), most=MOST_LINES):
        for gate_id in lines[row["line_id"]]:
            waiting[gate_id] += row["waiting"]
    return [
        GateInfo(
            id=gate_id,
            gate=found[gate_id].gate,
            used=max(len(held[gate_id]), found[gate_id].used if len(held[gate_id]) == most else 0),
            waiting=waiting[gate_id],
            holders=tuple(held[gate_id]),
        )
        for gate_id in gate_ids
    ]
