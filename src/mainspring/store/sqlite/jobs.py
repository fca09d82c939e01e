"""The hot path on SQLite: insert, claim, settle."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, timedelta
from functools import partial

from mainspring.model.job import Cancelled, Claim, JobState, NewJob
from mainspring.model.settlement import Settlement
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.rows import listed, micros, moment, span, to_claim
from mainspring.store.sqlite.settling import named, settle

PRUNE_BATCH = 5000
"""Rows a pruning transaction deletes, so that it has the write lock for milliseconds only."""


class SQLiteJobs:
    """JobQueue on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def insert(self, jobs: Sequence[NewJob], *, at: Stamp) -> list[int]:
        if not jobs:
            return []

        def work(session: Session) -> list[int]:
            now = session.now(at)
            first = session.row("reserve_ids")["id"] + 1
            session.each(
                "add_lanes", ({"queue": q, "priority": p} for q, p in {(j.queue, j.priority) for j in jobs})
            )
            session.each("insert_jobs", _records(first, jobs, now))
            session.hint()
            return list(range(first, first + len(jobs)))

        return await self._database.write(work)

    async def claim(
        self, worker_id: int, *, queues: Sequence[str], tasks: Sequence[str], limit: int, at: Stamp
    ) -> list[Claim]:
        def work(session: Session) -> list[Claim]:
            now = session.now(at)
            claims: list[Claim] = []
            for lane in session.rows("claim_lanes", worker_id=worker_id, queues=listed(queues), now=now):
                if len(claims) >= limit:
                    break
                taken = session.rows(
                    "claim_jobs",
                    worker_id=worker_id,
                    queue=lane["queue"],
                    priority=lane["priority"],
                    tasks=listed(tasks),
                    limit=limit - len(claims),
                    now=now,
                )
                # RETURNING keeps no order. The lanes come in theirs, so each is sorted by itself.
                taken.sort(key=lambda row: (row["run_at"], row["id"]))
                claims += [to_claim(row, worker_id) for row in taken]
            return claims

        return await self._database.write(work, durable=False)

    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        def work(session: Session) -> list[Claim]:
            return [to_claim(row, worker_id) for row in session.rows("held_jobs", worker_id=worker_id)]

        # Behind a claim whose caller gave up waiting, which may still be in the writer's queue.
        return await self._database.write(work, durable=False)

    async def settle(self, settlements: Sequence[Settlement], *, at: Stamp) -> list[int]:
        def work(session: Session) -> list[int]:
            settled = settle(session, settlements, session.now(at))
            return [s.job_id for s in settlements if s.job_id not in settled]

        return await self._database.write(work)

    async def recorded(self, settlements: Sequence[Settlement]) -> list[int]:
        def work(session: Session) -> list[int]:
            found = session.rows("recorded_runs", claims=listed(map(named, settlements)))
            return [row["job_id"] for row in found]

        # As `held`: behind a settle whose caller gave up waiting.
        return await self._database.write(work, durable=False)

    async def cancel(self, job_ids: Sequence[int], *, at: Stamp) -> list[Cancelled]:
        def work(session: Session) -> list[Cancelled]:
            gone = session.rows("cancel_jobs", ids=listed(job_ids), now=session.now(at))
            was = {row["id"]: _state(row) for row in gone}
            session.change("remove_jobs", ids=listed(was))
            return [Cancelled(job_id=job_id, was=was.get(job_id)) for job_id in job_ids]

        return await self._database.write(work)

    async def hasten(self, job_ids: Sequence[int], *, at: Stamp) -> list[int]:
        def work(session: Session) -> list[int]:
            due = {row["id"] for row in session.rows("hasten_jobs", ids=listed(job_ids), now=session.now(at))}
            if due:
                session.hint()
            return [job_id for job_id in job_ids if job_id in due]

        return await self._database.write(work)

    async def prune(self, *, keep: timedelta, at: Stamp) -> int:
        now = await self._database.read(lambda session: moment(session.now(at)))
        day = (now - keep).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        gone = await self._prune("prune_runs", micros(day)) + await self._prune("prune_slots", micros(day))
        return gone + await self._prune_steps(micros(day))

    async def _prune_steps(self, before: int) -> int:
        gone = after = 0
        while page := await self._database.read(
            partial(Session.rows, statement="old_steps", after=after, before=before, limit=PRUNE_BATCH)
        ):
            ids = [row["job_id"] for row in page]
            gone += await self._database.write(
                partial(Session.change, statement="prune_steps", job_ids=listed(ids))
            )
            after = ids[-1]
        return gone

    async def _prune(self, statement: str, before: int) -> int:
        gone = 0
        while count := await self._database.write(
            lambda session: session.change(statement, before=before, limit=PRUNE_BATCH)
        ):
            gone += count
        return gone


def _records(first: int, jobs: Sequence[NewJob], now: int) -> Iterator[tuple[object, ...]]:
    for job_id, job in enumerate(jobs, first):
        run_at = micros(job.run_at)
        if run_at is None:
            run_at = now + span(job.delay)
        yield job_id, job.queue, job.task, job.priority, run_at, now, job.max_attempts, job.payload


def _state(row: sqlite3.Row) -> JobState:
    if row["running"]:
        return JobState.RUNNING
    return JobState.DELAYED if row["delayed"] else JobState.READY
