"""Limits and pauses of queues on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from mainspring.lifecycle.admission import GateState
from mainspring.model.limit import Admission, Gate, GateInfo
from mainspring.model.queue import QueuePause
from mainspring.store.admitting import (
    MOST_LINES,
    admission,
    decide,
    distinct,
    lines_of,
    read,
    written,
)
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import length, listed, maybe_moment, micros, moment, span


class SQLiteLimits:
    """LimitStore and the pauses of queues on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        if not await self._database.read(lambda session: session.row("anybody_waits")["waits"]):
            return Admission()
        return await self._database.write(
            lambda session: _admit(session, after, session.now(at)), durable=False
        )

    async def gates(
        self,
        *,
        name: str | None = None,
        key: str | None = None,
        after: tuple[str, str] | None = None,
        limit: int,
        holders: int,
    ) -> list[GateInfo]:
        def work(session: Session) -> list[GateInfo]:
            found = session.rows("all_gates", name=name, key=key, **_after(after), limit=limit)
            return _infos(session, [row["id"] for row in found], holders)

        return await self._database.read(work)

    async def gates_of(self, job_id: int, *, holders: int) -> list[GateInfo]:
        def work(session: Session) -> list[GateInfo]:
            found = session.rows("gates_of_job", id=job_id)
            return _infos(session, read(found[0]["gates"]), holders) if found else []

        return await self._database.read(work)

    async def pause_queue(self, queue: str, *, author: str, note: str | None, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            paused = session.rows("pause_queue", queue=queue, author=author, note=note, now=session.now(at))
            session.change("mark_lanes", queue=queue, paused=True)
            return bool(paused)

        return await self._database.write(work)

    async def resume_queue(self, queue: str) -> bool:
        def work(session: Session) -> bool:
            resumed = session.rows("resume_queue", queue=queue)
            session.change("mark_lanes", queue=queue, paused=False)
            session.hint()
            return bool(resumed)

        return await self._database.write(work)

    async def queue_pauses(self) -> list[QueuePause]:
        def work(session: Session) -> list[QueuePause]:
            return [
                QueuePause(
                    queue=row["queue"],
                    paused_at=moment(row["paused_at"]),
                    paused_by=row["paused_by"],
                    note=row["note"],
                )
                for row in session.rows("queue_pauses")
            ]

        return await self._database.read(work)


def line_ids(session: Session, gates: Iterable[tuple[Gate, ...]]) -> dict[tuple[Gate, ...], int]:
    """The line of each combination of gates, made where it is new."""
    combinations, every = distinct(gates)
    ids = {(gate.name, gate.key): _known(session, gate) or _put(session, gate) for gate in every}
    return {
        each: _line(session, each, ids)
        or session.row("put_lines", gates=written(ids[g.name, g.key] for g in each))["id"]
        for each in combinations
    }


def known_lines(session: Session, gates: Iterable[tuple[Gate, ...]]) -> dict[tuple[Gate, ...], int]:
    """The same without writing: 0, which is no line, where it is new or a gate of it is not as it is here."""
    combinations, every = distinct(gates)
    known = {(gate.name, gate.key): _known(session, gate) for gate in every}
    ids = {key: gate_id for key, gate_id in known.items() if gate_id is not None}
    return {
        each: (_line(session, each, ids) or 0) if all((g.name, g.key) in ids for g in each) else 0
        for each in combinations
    }


def _line(session: Session, gates: tuple[Gate, ...], ids: dict[tuple[str, str], int]) -> int | None:
    found = session.rows("line_ids", gates=written(ids[gate.name, gate.key] for gate in gates))
    return found[0]["id"] if found else None


def _known(session: Session, gate: Gate) -> int | None:
    found = session.rows("gate_ids", **_declared(gate))
    return found[0]["id"] if found else None


def _put(session: Session, gate: Gate) -> int:
    gate_id: int = session.row("put_gates", **_declared(gate))["id"]
    return gate_id


def _declared(gate: Gate) -> dict[str, object]:
    return {
        "name": gate.name,
        "key": gate.key,
        "concurrency": gate.concurrency,
        "rate": gate.rate,
        "period": None if gate.period is None else span(gate.period),
        "burst": gate.burst,
        "open_window": gate.window,
    }


def _admit(session: Session, after: int, now: int) -> Admission:
    session.change("free_permits")
    found = {row["id"]: row["gates"] for row in session.rows("waiting_lines", after=after, limit=MOST_LINES)}
    states = _states(session, {gate for text in found.values() for gate in read(text)})
    lines = lines_of(found, states, moment(now))
    for line in lines:
        if room := line.room:
            rows = session.rows("first_in_line", line_id=line.id, limit=room, now=now)
            line.jobs = [row["id"] for row in rows]
            line.priority = rows[0]["priority"] if rows else 0
    passed = decide(lines, states, moment(now))
    if passed.job_ids:
        session.rows("admit_jobs", ids=listed(passed.job_ids), now=now)
        session.each("add_permits", passed.permits)
        session.hint()
    if passed.spent:
        session.each("spend_tokens", ((tokens, micros(at), gate) for gate, tokens, at in passed.spent))
    return admission(lines, passed)


def _states(session: Session, gate_ids: Iterable[int]) -> dict[int, GateState]:
    return {
        row["id"]: GateState(
            gate=_gate(row),
            used=row["used"],
            unclaimed=row["unclaimed"],
            tokens=row["tokens"],
            refilled_at=maybe_moment(row["refilled_at"]),
        )
        for row in session.rows("gates", ids=listed(gate_ids))
    }


def _infos(session: Session, gate_ids: Sequence[int], most: int) -> list[GateInfo]:
    states = _states(session, gate_ids)
    waiting = dict.fromkeys(gate_ids, 0)
    for row in session.rows("lines_of_gates", gate_ids=listed(gate_ids)):
        count = session.row("count_waiting", line_id=row["id"], most=MOST_LINES)["waiting"]
        for gate_id in set(read(row["gates"])) & waiting.keys():
            waiting[gate_id] += count
    infos = []
    for gate_id in gate_ids:
        held = [row["job_id"] for row in session.rows("gate_holders", gate_id=gate_id, most=most)]
        infos.append(
            GateInfo(
                id=gate_id,
                gate=states[gate_id].gate,
                used=max(len(held), states[gate_id].used if len(held) == most else 0),
                waiting=waiting[gate_id],
                holders=tuple(held),
            )
        )
    return infos


def _gate(row: sqlite3.Row) -> Gate:
    return Gate(
        name=row["name"],
        key=row["key"],
        concurrency=row["concurrency"],
        rate=row["rate"],
        period=None if row["period"] is None else length(row["period"]),
        burst=row["burst"],
        window=row["open_window"],
    )


def _after(gate: tuple[str, str] | None) -> dict[str, str]:
    """No name is empty, so all of them come after that."""
    name, key = gate or ("", "")
    return {"after_name": name, "after_key": key}
