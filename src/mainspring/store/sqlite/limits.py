"""Admission of jobs with limits on SQLite, and the lines they wait in."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mainspring.model.limit import Admission, Gate
from mainspring.store.admitting import (
    MOST_LINES,
    admission,
    decide,
    distinct,
    lines_of,
    read,
    states_of,
    written,
)
from mainspring.store.database import Stamp
from mainspring.store.sqlite.connection import Session, Transaction
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, moment, span


class SQLiteAdmitter:
    """Admitter on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def admit(self, *, after: int = 0, at: Stamp) -> Admission:
        if not await self._database.read(lambda session: session.row("anybody_waits")["waits"]):
            return Admission()
        return await self._database.write(
            lambda session: _admit(session, after, session.now(at)), durable=False
        )


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
    gate_ids = {gate for text in found.values() for gate in read(text)}
    states = states_of(session.rows("gates", ids=listed(gate_ids)))
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


class SQLitePlaces:
    """Where jobs of schedules wait: numbers for the limits, and the queues that a schedule names."""

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
