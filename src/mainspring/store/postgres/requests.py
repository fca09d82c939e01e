"""Requests that may come twice, on PostgreSQL: the row of a request is locked by whoever comes first."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.job import NewJob
from mainspring.model.request import Answered, RequestKey
from mainspring.store.answering import recalled, written
from mainspring.store.ports import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.inserting import Batch
from mainspring.store.postgres.jobs import PostgresJobs
from mainspring.store.postgres.unique import insert_unique_in


class PostgresRequests(PostgresJobs):
    """RequestStore on PostgreSQL."""

    async def insert_once(self, request: RequestKey, jobs: Sequence[NewJob], *, at: Stamp) -> Answered:
        batch, answered = await self._written(
            jobs, lambda batch: _insert_once(self._database, request, batch, at)
        )
        if answered is None:
            # It was written, and its answer is on record beside it.
            answered = await _insert_once(self._database, request, batch, at)
        if any(job.created or job.replaced for job in answered.jobs) and not answered.again:
            self._hints.put_back()
            self._notifier.poke()
        return answered


async def _insert_once(database: Database, request: RequestKey, batch: Batch, at: Stamp) -> Answered:
    place = {"caller": request.caller, "key": request.key}
    async with database.transaction("insert_jobs", life=batch.life) as transaction:
        # Whoever comes second waits here for the first, and finds its answer.
        [row] = await transaction.fetch("add_request", **place, digest=request.digest, at=at)
        if row["answer"] is not None:
            return recalled(request, row["digest"], row["answer"])
        done = await insert_unique_in(transaction, batch, at)
        await transaction.fetch("answer_request", **place, answer=written(done))
    return Answered(jobs=tuple(done))
