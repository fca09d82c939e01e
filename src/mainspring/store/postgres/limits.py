"""Limits and pauses of queues on PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from mainspring.errors import StoreError
from mainspring.lifecycle.admission import GateState, Line
from mainspring.model.limit import Admission, Gate, GateInfo
from mainspring.model.queue import QueuePause
from mainspring.store.admitting import (
    MOST_LINES,
    Passed,
    admission,
    decide,
    lines_of,
    read,
)
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.hints import Hints
from mainspring.store.postgres.wake import Notifier
from mainspring.waiting import pause

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

LOOK_EVERY = timedelta(milliseconds=5)
LOOKS = 1000


class PostgresLimits:
    """LimitStore and the pauses of queues on PostgreSQL."""

    def __init__(self, database: Database, hints: Hints, notifier: Notifier) -> None:
        self._database, self._hints, self._notifier = database, hints, notifier

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
            self._notifier.poke()
        return done

    async def gates(
        self,
        *,
        name: str | None = None,
        key: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
        holders: int,
    ) -> list[GateInfo]:
        found = await self._database.fetch("all_gates", name=name, key=key, **_after(after), limit=limit)
        return await self._infos([row["id"] for row in found], holders)

    async def gates_of(self, job_id: int, *, holders: int) -> list[GateInfo]:
        found = await self._database.fetch("gates_of_job", id=job_id)
        return await self._infos(read(found[0]["gates"]), holders) if found else []

    async def pause_queue(self, queue: str, *, author: str, note: str | None, at: Stamp) -> bool:
        async with self._database.transaction("pause_queue") as transaction:
            await transaction.fetch("lock_lanes")
            paused = await transaction.fetch("pause_queue", queue=queue, author=author, note=note, at=at)
            await transaction.fetch("mark_lanes", queue=queue, paused=True)
        await self._claims_have_ended()
        return bool(paused)

    async def resume_queue(self, queue: str) -> bool:
        async with self._database.transaction("resume_queue") as transaction:
            await transaction.fetch("lock_lanes")
            resumed = await transaction.fetch("resume_queue", queue=queue)
            await transaction.fetch("mark_lanes", queue=queue, paused=False)
        self._hints.put_back()
        self._notifier.poke()
        return bool(resumed)

    async def queue_pauses(self) -> list[QueuePause]:
        return [
            QueuePause(
                queue=row["queue"], paused_at=row["paused_at"], paused_by=row["paused_by"], note=row["note"]
            )
            for row in await self._database.fetch("queue_pauses")
        ]

    async def _claims_have_ended(self) -> None:
        """A claim that was under way may not have seen the pause. When none of them is left, no job can be
        claimed from the queue any more. Claims are short: one that is not has a server that hangs."""
        [row] = await self._database.fetch("server_now")
        for _ in range(LOOKS):
            [found] = await self._database.fetch("claims_under_way", began=row["now"])
            if found["claims"] == 0:
                return
            await pause(LOOK_EVERY)
        raise StoreError("the queue is paused, but a claim from before has not ended and may still take jobs")

    async def _admit(self, transaction: Transaction, after: int, at: Stamp) -> Admission:
        [row] = await transaction.fetch("now", at=at)
        now = row["now"]
        await transaction.fetch("free_permits")
        found = await transaction.fetch("waiting_lines", after=after, limit=MOST_LINES)
        # One whose line a failover lost must not hold up the others.
        texts = {row["id"]: row["gates"] for row in found if row["gates"] is not None}
        states = _states(
            await transaction.fetch(
                "gates", ids=sorted({gate for text in texts.values() for gate in read(text)})
            )
        )
        lines = lines_of(texts, states, now)
        await _fill(transaction, lines, at)
        passed = decide(lines, states, now)
        await _write(transaction, passed, at)
        return admission(lines, passed)

    async def _infos(self, gate_ids: Sequence[int], most: int) -> list[GateInfo]:
        states = _states(await self._database.fetch("gates", ids=list(gate_ids)))
        held: dict[int, list[int]] = defaultdict(list)
        for row in await self._database.fetch("gate_holders", gate_ids=list(gate_ids), most=most):
            held[row["gate_id"]].append(row["job_id"])
        found = await self._database.fetch("lines_of_gates", gate_ids=list(gate_ids))
        lines = {row["id"]: read(row["gates"]) for row in found}
        waiting: dict[int, int] = defaultdict(int)
        for row in await self._database.fetch("count_waiting", line_ids=sorted(lines), most=MOST_LINES):
            for gate_id in lines[row["line_id"]]:
                waiting[gate_id] += row["waiting"]
        return [
            GateInfo(
                id=gate_id,
                gate=states[gate_id].gate,
                used=max(len(held[gate_id]), states[gate_id].used if len(held[gate_id]) == most else 0),
                waiting=waiting[gate_id],
                holders=tuple(held[gate_id]),
            )
            for gate_id in gate_ids
        ]


async def _fill(transaction: Transaction, lines: Iterable[Line], at: Stamp) -> None:
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


def _states(rows: Iterable[Record]) -> dict[int, GateState]:
    return {
        row["id"]: GateState(
            gate=_gate(row),
            used=row["used"],
            unclaimed=row["unclaimed"],
            tokens=row["tokens"],
            refilled_at=row["refilled_at"],
        )
        for row in rows
    }


def _gate(row: Record) -> Gate:
    return Gate(
        name=row["name"],
        key=row["key"],
        concurrency=row["concurrency"],
        rate=row["rate"],
        period=row["period"],
        burst=row["burst"],
        window=row["open_window"],
    )


def _after(gate: tuple[str, str] | None) -> dict[str, str]:
    """No name is empty, so all of them come after that."""
    name, key = gate or ("", "")
    return {"after_name": name, "after_key": key}
