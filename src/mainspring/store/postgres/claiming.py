"""Claims on PostgreSQL: new claims, and claims whose answer was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from mainspring.clock import Clock
from mainspring.errors import AnswerLost
from mainspring.model.job import Claim
from mainspring.rules.settle import LAST_CRASH
from mainspring.store.database import Stamp
from mainspring.store.postgres.connection import Database
from mainspring.store.postgres.hints import EVERYTHING, Hints, Key, Place, Stretch
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.rows import to_claim

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

ID, QUEUE, PRIORITY, RUN_AT = 0, 2, 4, 8
"""The positions of these columns in a claimed row: faster than a look-up by name for each job."""
_DUE = itemgetter(RUN_AT, ID)
_ANY = 32_767
"""A number of crashes that is higher than a job can have."""


class Claiming:
    """The claims of a queue. Workers call it several hundred times a second."""

    def __init__(self, database: Database, names: Names, hints: Hints, clock: Clock) -> None:
        self._database = database
        self._names = names
        self._hints = hints
        self._clock = clock
        self._lost_sessions: list[object] = []
        self._database_id, self._known_in = "", -1

    async def claim(
        self,
        worker_id: int,
        *,
        queues: Sequence[str],
        tasks: Sequence[str],
        limit: int,
        at: Stamp,
        everywhere: bool,
        orphans: int | None,
        last: bool,
    ) -> list[Claim]:
        # With numbers from before a failover, the claim could get jobs of other tasks.
        life = self._database.lives.count
        database_id = self._database_id if self._known_in == life else await self._learn(life)
        queue_ids = await self._names.queue_ids(queues)
        task_ids = await self._names.task_ids(tasks)

        suspected: list[Claim] = []
        if orphans != 0:
            most = limit if orphans is None else min(limit, orphans)
            suspected = await self._orphans(
                life, database_id, worker_id, queue_ids, task_ids, most, at, last=last
            )
            limit -= len(suspected)
        if limit == 0:
            return suspected
        rows: list[Record] = []
        looks = 0
        for stretch in [EVERYTHING] if everywhere else self._hints.looks(queue_ids, task_ids):
            found = await self._seek(life, stretch, worker_id, queue_ids, task_ids, limit - len(rows), at)
            rows += found
            looks += bool(found)
            if len(rows) == limit:
                break
        if looks > 1:
            _sort(rows, queue_ids)
        claims = [to_claim(row, worker_id, self._names, database_id) for row in rows]
        return [*suspected, *claims] if suspected else claims

    async def held(self, worker_id: int, *, at: Stamp) -> list[Claim]:
        while self._lost_sessions:
            await self._database.end_session(self._lost_sessions[-1])
            self._lost_sessions.pop()
        life = self._database.lives.count
        database_id = self._database_id if self._known_in == life else await self._learn(life)
        rows = await self._database.fetch_as_of(life, "held_jobs", worker_id=worker_id, at=at)
        await self._names.learn({r["queue_id"] for r in rows}, {r["task_id"] for r in rows})
        claims = [to_claim(cast("Record", row[:-1]), worker_id, self._names, database_id) for row in rows]
        return [replace(each, orphan=row["orphan"]) for each, row in zip(claims, rows, strict=True)]

    async def _orphans(
        self,
        life: int,
        database_id: str,
        worker_id: int,
        queue_ids: list[int],
        task_ids: list[int],
        limit: int,
        at: Stamp,
        *,
        last: bool,
    ) -> list[Claim]:
        which = {"queue_ids": queue_ids, "task_ids": task_ids, "at": at}
        if not await self._relaxed(life, "orphans_due", **which):
            return []
        rows = await self._relaxed(
            life, "claim_orphans", worker_id=worker_id, least=0, most=LAST_CRASH - 1, limit=limit, **which
        )
        if not rows and last:
            rows = await self._relaxed(
                life, "claim_orphans", worker_id=worker_id, least=LAST_CRASH, most=_ANY, limit=1, **which
            )
        _sort(rows, queue_ids)
        claims = [to_claim(row, worker_id, self._names, database_id) for row in rows]
        return [replace(claim, orphan=True) for claim in claims]

    async def _seek(
        self,
        life: int,
        stretch: Stretch | None,
        worker_id: int,
        queue_ids: list[int],
        task_ids: list[int],
        limit: int,
        at: Stamp,
    ) -> list[Record]:
        """Claim jobs after the hints, or in a stretch before the hints."""
        hinted = stretch is None or stretch.is_piece
        places = self._hints.places if hinted else {}
        floor = self._hints.floor if hinted else None
        after_run_at, after_id = (floor if stretch is None else stretch.after) or (None, None)
        until_run_at, until_id = (stretch and stretch.until) or (None, None)
        began = self._clock.monotonic()
        rows = await self._relaxed(
            life,
            "claim_jobs",
            worker_id=worker_id,
            queue_ids=queue_ids,
            task_ids=task_ids,
            limit=limit,
            hint_queue_ids=[queue for queue, _ in places],
            hint_priorities=[priority for _, priority in places],
            hint_run_ats=[run_at for run_at, _ in places.values()],
            hint_ids=[job_id for _, job_id in places.values()],
            before=stretch is not None and stretch.is_piece,
            floor=floor and floor[0],
            after_run_at=after_run_at,
            after_id=after_id,
            until_run_at=until_run_at,
            until_id=until_id,
            at=at,
        )
        _sort(rows, queue_ids)
        self._hints.looked(stretch, began, _lasts(rows), full=len(rows) == limit)
        return rows

    async def _relaxed(self, life: int, statement: str, **params: object) -> list[Record]:
        try:
            return await self._database.relaxed_as_of(life, statement, **params)
        except AnswerLost as lost:
            self._lost_sessions.append(lost.session)
            raise

    async def _learn(self, life: int) -> str:
        """The identity of the database that answers in this life."""
        [row] = await self._database.fetch_as_of(life, "identity")
        found: str = row["id"]
        self._database_id, self._known_in = found, life
        return found


def _sort(rows: list[Record], queue_ids: Sequence[int]) -> None:
    """Sort the rows, because RETURNING has no order: by priority, then by the moment when the job is due."""
    if len({(row[QUEUE], row[PRIORITY]) for row in rows}) < 2:
        rows.sort(key=_DUE)  # the usual case, without a call for each row
    else:
        place = {queue_id: n for n, queue_id in enumerate(queue_ids)}
        rows.sort(key=lambda r: (-r[PRIORITY], place[r[QUEUE]], r[RUN_AT], r[ID]))


def _lasts(rows: list[Record]) -> Iterator[tuple[Key, Place]]:
    """The last row of each priority level, from sorted rows."""
    following: Key | None = None
    for row in reversed(rows):
        lane = row[QUEUE], row[PRIORITY]
        if lane != following:
            following = lane
            yield lane, (row[RUN_AT], row[ID])
