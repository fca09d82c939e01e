"""The queue on SQLite: insert, claim and settle."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import cast

from msgspec.structs import replace

from mainspring.model.job import Answered, Claim, Inserted, NewJob, RequestKey, Whereabouts
from mainspring.model.run import Settlement
from mainspring.rules.settle import LAST_CRASH
from mainspring.store.database import Stamp, reads
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database, identity
from mainspring.store.sqlite.inserting import insert, insert_unique
from mainspring.store.sqlite.rows import listed, to_claim
from mainspring.store.sqlite.settling import named, settle
from mainspring.store.uniqueness import recalled, written

RUN_AT_AND_ID = itemgetter(7, 0)
"""Of a claimed row: by position, for the driver looks a name up column by column."""
_ANY = 32_767
"""A number of crashes that is higher than a job can have."""


class SQLiteQueue:
    """Queue on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        if not jobs:
            return []

        def work(session: Session) -> list[int]:
            first = session.row("reserve_ids")["id"] + 1
            insert(session, list(enumerate(jobs, first)), session.now(at))
            return list(range(first, first + len(jobs)))

        return await self._database.write(work)

    async def insert_unique(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[Inserted]:
        return await self._database.write(lambda session: insert_unique(session, jobs, session.now(at)))

    async def insert_once(self, request: RequestKey, jobs: Sequence[NewJob], *, at: Stamp) -> Answered:
        def work(session: Session) -> Answered:
            place = {"caller": request.caller, "key": request.key}
            known = session.rows("request", **place)
            if known:
                return recalled(request, known[0]["digest"], known[0]["answer"])
            now = session.now(at)
            done = insert_unique(session, jobs, now)
            session.change("add_request", **place, digest=request.digest, answer=written(done), now=now)
            return Answered(jobs=tuple(done))

        return await self._database.write(work)

    async def claim(
        self,
        worker_id: int,
        *,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        at: Stamp,
        everywhere: bool = False,
        orphans: int | None = None,
        last: bool = True,
    ) -> list[Claim]:
        def work(session: Session) -> list[Claim]:
            now = session.now(at)
            lanes = session.rows("claim_priority_levels", worker_id=worker_id, queues=listed(queues), now=now)
            which = {"tasks": listed(tasks), "now": now}
            database_id = self._identity(session)
            claims: list[Claim] = []
            if orphans != 0 and session.rows("orphans_due", queues=listed(queues), **which):
                most = limit if orphans is None else min(limit, orphans)
                take = partial(_claimed, session, lanes, "claim_orphans", worker_id, database_id)
                taken = take(most, {"least": 0, "most": LAST_CRASH - 1, **which})
                if not taken and last:
                    taken = take(min(1, most), {"least": LAST_CRASH, "most": _ANY, **which})
                claims = [replace(claim, orphan=True) for claim in taken]
            return claims + _claimed(
                session, lanes, "claim_jobs", worker_id, database_id, limit - len(claims), which
            )

        return await self._database.write(work, durable=False)

    async def begin(self, claim: Claim, *, at: Stamp) -> bool:
        named = {"id": claim.job_id, "worker_id": claim.worker_id, "fence": claim.fence}
        return bool(await self._database.write(lambda session: session.change("begin_orphan", **named)))

    @reads
    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        def work(session: Session) -> list[Claim]:
            held = session.rows("held_jobs", worker_id=worker_id, now=session.now(at))
            database_id = self._identity(session)
            claims = [to_claim(cast("sqlite3.Row", row[:-1]), worker_id, database_id) for row in held]
            return [replace(each, orphan=bool(row["orphan"])) for each, row in zip(claims, held, strict=True)]

        # The writer runs this after a claim whose caller stopped waiting and that may still be queued.
        return await self._database.write(work, durable=False)

    @reads
    async def whereabouts(self, job_ids: Sequence[int]) -> list[Whereabouts]:
        def work(session: Session) -> list[Whereabouts]:
            found = session.rows("whereabouts", job_ids=listed(job_ids))
            return [
                Whereabouts(job_id=row["id"], live=bool(row["live"]), holder=row["holder"]) for row in found
            ]

        return await self._database.read(work)

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        def work(session: Session) -> list[int]:
            now = session.now(at)
            settled = settle(session, settlements, now)
            if any(s.log is not None for s in settlements):
                note_logs(session, settlements, settled, now)
            return [s.job_id for s in settlements if s.job_id not in settled]

        return await self._database.write(work)

    @reads
    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        def work(session: Session) -> list[int]:
            found = session.rows("recorded_runs", claims=listed(map(named, settlements)))
            return [row["job_id"] for row in found]

        # As in `held`: the writer runs this after a settle whose caller stopped waiting.
        return await self._database.write(work, durable=False)

    def _identity(self, session: Session) -> str:
        """The id of the database. It is read once, because an open file cannot be replaced."""
        known = self._database.identity
        if known is None:
            known = self._database.identity = identity(session)
        return known


def _claimed(
    session: Session,
    lanes: Sequence[sqlite3.Row],
    statement: str,
    worker_id: int,
    database_id: str,
    limit: int,
    which: Mapping[str, object],
) -> list[Claim]:
    """Claim at most `limit` jobs, from one priority level after the other."""
    claims: list[Claim] = []
    for lane in lanes:
        if len(claims) >= limit:
            break
        place = {"queue": lane["queue"], "priority": lane["priority"], "limit": limit - len(claims)}
        taken = session.rows(statement, worker_id=worker_id, **place, **which)
        # RETURNING keeps no order. The priority levels come in theirs, so each is sorted by itself.
        taken.sort(key=RUN_AT_AND_ID)
        claims += [to_claim(row, worker_id, database_id) for row in taken]
    return claims


def note_logs(session: Session, settlements: Sequence[Settlement], settled: set[int], now: int) -> None:
    """Keep what was captured of the runs that were settled, in the same transaction."""
    session.each(
        "note_logs",
        [
            {"job_id": s.job_id, "now": now, "worker_id": s.worker_id, "fence": s.fence, "text": s.log}
            for s in settlements
            if s.log is not None and s.job_id in settled
        ],
    )
