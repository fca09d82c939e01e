"""Requests that may come twice, on SQLite."""

from __future__ import annotations

from collections.abc import Sequence

from mainspring.model.job import NewJob
from mainspring.model.request import Answered, RequestKey
from mainspring.store.answering import recalled, written
from mainspring.store.ports import Stamp
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.unique import insert_unique


class SQLiteRequests:
    """RequestStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

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
