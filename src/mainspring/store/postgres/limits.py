"""Admission of jobs with limits on PostgreSQL, and the lines in which they wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from mainspring.model.limit import Admission, LimitKey
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
            [lock] = await transaction.fetch("lock_limit_keys")
            if not lock["ours"]:
                return Admission(waiting=True, busy=True)
            done = await self._admit(transaction, after, at)
        if done.admitted:
            self._database.hint()
        return done

    async def _admit(self, transaction: Transaction, after: int, at: Stamp) -> Admission:
        [row] = await transaction.fetch("now", at=at)
        now = row["now"]
        await transaction.fetch("free_limit_holders")
        found = await transaction.fetch("waiting_limit_sets", after=after, limit=MOST_LINES)
        # A job whose line was lost in a failover must not block the other jobs.
        texts = {row["id"]: row["limit_keys"] for row in found if row["limit_keys"] is not None}
        states = states_of(
            await transaction.fetch(
                "limit_keys", ids=sorted({limit_key for text in texts.values() for limit_key in read(text)})
            )
        )
        lines = lines_of(texts, states, now)
        await _fill(transaction, lines, at)
        passed = decide(lines, states, now)
        await _write(transaction, passed, at)
        return admission(lines, passed)


class Lines:
    """A cache of lines: a written line never changes its number or its limit keys."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[tuple[LimitKey, ...], int] = {}
        database.lives.on_change(self._known.clear)

    async def ids(self, limit_keys: Iterable[tuple[LimitKey, ...]]) -> list[int | None]:
        """The line of each combination. A new line is written. None for jobs without limit keys."""
        wanted = list(limit_keys)
        known = {each: line for each in wanted if (line := self._known.get(each)) is not None}
        combinations, every = distinct(each for each in wanted if each not in known)
        if combinations:
            known |= await self._learn(combinations, every)
        return [known[each] if each else None for each in wanted]

    async def _learn(
        self, combinations: list[tuple[LimitKey, ...]], every: list[LimitKey]
    ) -> dict[tuple[LimitKey, ...], int]:
        every.sort(
            key=lambda limit_key: (limit_key.name, limit_key.key)
        )  # in one order, so that two processes do not wait for each other
        names, keys = [limit_key.name for limit_key in every], [limit_key.key for limit_key in every]
        await self._database.fetch(
            "put_limit_keys",
            names=names,
            keys=keys,
            concurrencies=[limit_key.concurrency for limit_key in every],
            rates=[limit_key.rate for limit_key in every],
            periods=[limit_key.period for limit_key in every],
            bursts=[limit_key.burst for limit_key in every],
            windows=[limit_key.window for limit_key in every],
        )
        found = await self._database.fetch("limit_key_ids", names=names, keys=keys)
        ids = {(row["name"], row["key"]): row["id"] for row in found}
        texts = {each: written(ids[g.name, g.key] for g in each) for each in combinations}
        await self._database.fetch("put_limit_sets", limit_keys=sorted(set(texts.values())))
        lines = await self._database.fetch("limit_set_ids", limit_keys=sorted(set(texts.values())))
        numbers = {row["limit_keys"]: row["id"] for row in lines}
        learnt = {each: numbers[text] for each, text in texts.items()}
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known |= learnt
        return learnt


class PostgresPlaces:
    """Places on PostgreSQL: numbers for the limits and the queues that a schedule names."""

    def __init__(self, names: Names, lines: Lines) -> None:
        self._names = names
        self._lines = lines

    async def lines(self, limit_keys: Iterable[tuple[LimitKey, ...]]) -> list[int | None]:
        return await self._lines.ids(limit_keys)

    async def priority_levels(self, places: Collection[tuple[str, str, int]]) -> None:
        # Inside the transaction that writes the schedules it is too late: others may wait for the names.
        queue_ids = await self._names.queue_ids(queue for queue, _, _ in places)
        await self._names.task_ids(task for _, task, _ in places)
        await self._names.ensure_priority_levels(
            {(queue_id, priority) for queue_id, (_, _, priority) in zip(queue_ids, places, strict=True)}
        )


async def _fill(transaction: Transaction, lines: Iterable[WaitingLine], at: Stamp) -> None:
    """Find the first jobs of each line, as many as its limits have room for."""
    open_limit_sets = {line.id: line for line in lines if line.room}
    if not open_limit_sets:
        return
    jobs: dict[int, list[Record]] = defaultdict(list)
    for row in await transaction.fetch(
        "first_of_limit_set",
        limit_set_ids=list(open_limit_sets),
        limits=[line.room for line in open_limit_sets.values()],
        at=at,
    ):
        jobs[row["limit_set_id"]].append(row)
    for limit_set_id, rows in jobs.items():
        open_limit_sets[limit_set_id].jobs = [row["id"] for row in rows]
        open_limit_sets[limit_set_id].priority = rows[0]["priority"]


async def _write(transaction: Transaction, passed: Passed, at: Stamp) -> None:
    if passed.job_ids:
        await transaction.fetch("admit_jobs", ids=sorted(passed.job_ids), at=at)
        await transaction.fetch(
            "add_limit_holders",
            limit_key_ids=[limit_key_id for limit_key_id, _ in passed.limit_holders],
            job_ids=[job_id for _, job_id in passed.limit_holders],
        )
    if passed.spent:
        await transaction.fetch(
            "spend_tokens",
            ids=[limit_key_id for limit_key_id, _, _ in passed.spent],
            tokens=[tokens for _, tokens, _ in passed.spent],
            refilled_ats=[moment for _, _, moment in passed.spent],
        )
