"""Admission of jobs with limits on PostgreSQL, and the lines that they wait in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from mainspring.model.limit import Admission, Gate
from mainspring.rules.admission import WaitingLine
from mainspring.store.admitting import (
    MOST_LINES,
    Passed,
    admission,
    decide,
    distinct,
    lines_of,
    read,
    states_of,
    written,
)
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record
MOST_KNOWN = 100_000


class PostgresAdmitter:
    """Admitter on PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        [row] = await self._database.relaxed("anybody_waits")
        if not row["waits"]:
            return Admission()
        async with self._database.transaction("admit") as transaction:
            [lock] = await transaction.fetch("lock_gates")
            if not lock["ours"]:
                return Admission(waiting=True, busy=True)
            done = await self._admit(transaction, after, at)
        if done.admitted:
            self._database.hint()
        return done

    async def _admit(self, transaction: Transaction, after: int, at: Stamp) -> Admission:
        [row] = await transaction.fetch("now", at=at)
        now = row["now"]
        await transaction.fetch("free_permits")
        found = await transaction.fetch("waiting_lines", after=after, limit=MOST_LINES)
        # One whose line a failover lost must not hold up the others.
        texts = {row["id"]: row["gates"] for row in found if row["gates"] is not None}
        states = states_of(
            await transaction.fetch(
                "gates", ids=sorted({gate for text in texts.values() for gate in read(text)})
            )
        )
        lines = lines_of(texts, states, now)
        await _fill(transaction, lines, at)
        passed = decide(lines, states, now)
        await _write(transaction, passed, at)
        return admission(lines, passed)


async def _fill(transaction: Transaction, lines: Iterable[WaitingLine], at: Stamp) -> None:
    """Find the first of each line, as many as there is room for."""
    open_lines = {line.id: line for line in lines if line.room}
    if not open_lines:
        return
    jobs: dict[int, list[Record]] = defaultdict(list)
    for row in await transaction.fetch(
        "first_in_line",
        line_ids=list(open_lines),
        limits=[line.room for line in open_lines.values()],
        at=at,
    ):
        jobs[row["line_id"]].append(row)
    for line_id, rows in jobs.items():
        open_lines[line_id].jobs = [row["id"] for row in rows]
        open_lines[line_id].priority = rows[0]["priority"]


async def _write(transaction: Transaction, passed: Passed, at: Stamp) -> None:
    if passed.job_ids:
        await transaction.fetch("admit_jobs", ids=sorted(passed.job_ids), at=at)
        await transaction.fetch(
            "add_permits",
            gate_ids=[gate_id for gate_id, _ in passed.permits],
            job_ids=[job_id for _, job_id in passed.permits],
        )
    if passed.spent:
        await transaction.fetch(
            "spend_tokens",
            ids=[gate_id for gate_id, _, _ in passed.spent],
            tokens=[tokens for _, tokens, _ in passed.spent],
            refilled_ats=[moment for _, _, moment in passed.spent],
        )


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
