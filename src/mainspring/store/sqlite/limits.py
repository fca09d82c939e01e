"""Admission of jobs with limits on SQLite, and the lines in which they wait."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from mainspring.model.limit import Admission, LimitKey
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


class SQLitePlaces:
    """Places on SQLite: numbers for the limits, and the queues that a schedule names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lines(self, limit_keys: Iterable[tuple[LimitKey, ...]]) -> list[int | None]:
        wanted = list(limit_keys)
        named = [each for each in wanted if each]
        if not named:
            return [None] * len(wanted)
        # Most lines are on record, and a read does not wait for a writer.
        known = await self._database.read(lambda session: known_limit_sets(session, named))
        if not all(known.values()):
            known = await self._database.write(lambda session: limit_set_ids(session, named))
        return [known[each] if each else None for each in wanted]

    async def priority_levels(self, places: Collection[tuple[str, str, int]]) -> None:
        lanes = [
            {"queue": queue, "priority": priority}
            for queue, priority in sorted({(queue, priority) for queue, _, priority in places})
        ]

        async def work(tx: Transaction) -> None:
            await tx.each("add_priority_levels", lanes)

        # The durable transaction of the schedules, which follows, makes this one durable too.
        await self._database.within("add_priority_levels", work, durable=False)


def limit_set_ids(
    session: Session, limit_keys: Iterable[tuple[LimitKey, ...]]
) -> dict[tuple[LimitKey, ...], int]:
    """The line of each combination of limit keys. A new line is written."""
    combinations, every = distinct(limit_keys)
    ids = {
        (limit_key.name, limit_key.key): _known(session, limit_key) or _put(session, limit_key)
        for limit_key in every
    }
    return {
        each: _line(session, each, ids)
        or session.row("put_limit_sets", limit_keys=written(ids[g.name, g.key] for g in each))["id"]
        for each in combinations
    }


def known_limit_sets(
    session: Session, limit_keys: Iterable[tuple[LimitKey, ...]]
) -> dict[tuple[LimitKey, ...], int]:
    """The same without writing. The answer is 0, which is no line, for a new line, and for a limit key that
    is declared differently in the store."""
    combinations, every = distinct(limit_keys)
    known = {(limit_key.name, limit_key.key): _known(session, limit_key) for limit_key in every}
    ids = {key: limit_key_id for key, limit_key_id in known.items() if limit_key_id is not None}
    return {
        each: (_line(session, each, ids) or 0) if all((g.name, g.key) in ids for g in each) else 0
        for each in combinations
    }


def _admit(session: Session, after: int, now: int) -> Admission:
    session.change("free_limit_holders")
    found = {
        row["id"]: row["limit_keys"]
        for row in session.rows("waiting_limit_sets", after=after, limit=MOST_LINES)
    }
    limit_key_ids = {limit_key for text in found.values() for limit_key in read(text)}
    states = states_of(session.rows("limit_keys", ids=listed(limit_key_ids)))
    lines = lines_of(found, states, moment(now))
    for line in lines:
        if room := line.room:
            rows = session.rows("first_of_limit_set", limit_set_id=line.id, limit=room, now=now)
            line.jobs = [row["id"] for row in rows]
            line.priority = rows[0]["priority"] if rows else 0
    passed = decide(lines, states, moment(now))
    if passed.job_ids:
        session.rows("admit_jobs", ids=listed(passed.job_ids), now=now)
        session.each("add_limit_holders", passed.limit_holders)
        session.hint()
    if passed.spent:
        session.each(
            "spend_tokens", ((tokens, micros(at), limit_key) for limit_key, tokens, at in passed.spent)
        )
    return admission(lines, passed)


def _line(session: Session, limit_keys: tuple[LimitKey, ...], ids: dict[tuple[str, str], int]) -> int | None:
    found = session.rows(
        "limit_set_ids", limit_keys=written(ids[limit_key.name, limit_key.key] for limit_key in limit_keys)
    )
    return found[0]["id"] if found else None


def _known(session: Session, limit_key: LimitKey) -> int | None:
    found = session.rows("limit_key_ids", **_declared(limit_key))
    return found[0]["id"] if found else None


def _put(session: Session, limit_key: LimitKey) -> int:
    limit_key_id: int = session.row("put_limit_keys", **_declared(limit_key))["id"]
    return limit_key_id


def _declared(limit_key: LimitKey) -> dict[str, object]:
    return {
        "name": limit_key.name,
        "key": limit_key.key,
        "concurrency": limit_key.concurrency,
        "rate": limit_key.rate,
        "period": None if limit_key.period is None else span(limit_key.period),
        "burst": limit_key.burst,
        "open_window": limit_key.window,
    }
