"""Admission of jobs with limits on PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from mainspring.model.limit import Admission
from mainspring.rules.admission import WaitingLine
from mainspring.store.admitting import (
    MOST_LINES,
    Passed,
    admission,
    decide,
    lines_of,
    read,
    states_of,
)
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database, Transaction

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


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
