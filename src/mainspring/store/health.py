"""Health of the store: the facts for alerts, the state of the database, and rows that cannot be read."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import TypeVar

from mainspring.errors import (
    AnswerLost,
    MainspringError,
    SchemaMismatch,
    StoreError,
    StoreFull,
    StoreUnavailable,
    Unreadable,
)
from mainspring.model.alert import (
    COUNTED,
    Died,
    Dropped,
    Facts,
    LateJob,
    Lost,
    Outage,
    Overdue,
    Retrying,
    Rule,
    Streak,
    Waiting,
    Watched,
)
from mainspring.model.health import StoreHealth, UnreadableRow
from mainspring.model.process import ProcessInfo
from mainspring.model.queue import QueuePause
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.migrations import Schema
from mainspring.store.rows import maybe_moment, moment, reader

LOOK_AGAIN = 10.0
"""Seconds of pause after a search that found nothing: the error has another cause, and a search reads whole
tables."""
BURST = 50
"""The number of overdue schedules of one burst that are named, at most."""
OF_LISTS: dict[str, tuple[Rule, ...]] = {
    "overdue": (Rule.MISSED,),
    "dropped": (Rule.SLOTS_DROPPED,),
    "expected": (Rule.LATE_START, Rule.LATE_FINISH),
    "stale": (Rule.LATE_START,),
    "waiting": (Rule.OLDEST_WAITING, Rule.NO_WORKER),
    "lost": (Rule.PROCESS_LOST,),
    "died": (Rule.FAILED,),
    "failing": (Rule.FAILING,),
    "retrying": (Rule.RETRYING,),
}
"""The rules that have more than the list names, if the list was cut."""

_log = logging.getLogger("mainspring")
_process = reader(ProcessInfo)
_lost = reader(Lost)
_overdue = reader(Overdue)
_dropped = reader(Dropped)
_expected = reader(LateJob)
_stale = reader(LateJob, given=["claimed", "begun", "expect_start_within", "expect_finish_by"])
_waiting = reader(Waiting)
_pause = reader(QueuePause)
_died = reader(Died)
_retrying = reader(Retrying)
_gap = reader(Outage)
unreadable_row = reader(UnreadableRow)
T = TypeVar("T")


class Health(ABC):
    """Health of a store. The parts that differ are methods of each dialect."""

    def __init__(self, database: Database, schema: Schema) -> None:
        self._database = database
        self._schema = schema
        self._look = asyncio.Lock()
        self._looks = 0
        self._look_again_at = 0.0

    @reads
    async def watch(self, watched: Watched, *, at: Stamp) -> Facts:
        """The facts of this moment, by the store's clock, on which alerts, the overview and `status` are
        based. It reads a bounded number of rows."""

        async def work(tx: Transaction) -> Facts:
            return await _facts(tx, watched, at)

        return await self._database.reading("watch", work)

    @abstractmethod
    async def look(self) -> StoreHealth:
        """The state of the database. This needs no more rights than the other calls. Facts that need more
        rights are named as withheld."""

    @abstractmethod
    async def damage(self) -> list[str] | None:
        """Read the whole file and answer what is broken in it; None for a server, which has no such check.
        The call takes as long as reading the file."""

    @abstractmethod
    async def facts(self) -> dict[str, str]:
        """Facts about the engine for operators: its version and relevant settings."""

    @abstractmethod
    async def is_down(self) -> bool:
        """Whether it is known that the store takes calls from no process: its host refuses sessions, the
        server says that it starts or stops, or the file is locked. Without an answer the result is False,
        because only this process may have the problem."""

    async def set_aside(self) -> list[UnreadableRow]:
        """Move every row that cannot be read, completely, into `unreadable_rows`, and answer these rows. The
        call reads whole tables, so it is made only after a call has failed on such a row. It raises
        SchemaMismatch where the schema is of another version, because a newer version may be able to read the
        row."""
        await self._schema.verify()
        return await self._set_aside()

    @abstractmethod
    async def _set_aside(self) -> list[UnreadableRow]:
        """Move the rows."""

    async def left_out(self, error: Exception) -> bool:
        """After an error: whether a search for rows that cannot be read was made. Rows that it finds are set
        aside and logged. One search runs at a time. After a search that found nothing there is a pause."""
        if isinstance(error, StoreUnavailable | AnswerLost | SchemaMismatch | StoreFull):
            return False
        if isinstance(error, MainspringError) and type(error) not in (StoreError, Unreadable):
            return False
        before, loop = self._looks, asyncio.get_running_loop()
        async with self._look:
            if self._looks > before:
                return True  # another call has searched since this call failed
            if loop.time() < self._look_again_at:
                return False
            try:
                found = await self.set_aside()
            except StoreError:
                return False  # the caller raises the first error
            self._looks += 1
            if not found:
                self._look_again_at = loop.time() + LOOK_AGAIN  # counted from now: a search may take minutes
        for row in found:
            _log.warning(
                "row %s of %s cannot be read (%s): it was moved, whole, into unreadable_rows, "
                "and is left out",
                row.key,
                row.table,
                error,
            )
        return True


async def _facts(tx: Transaction, watched: Watched, at: Stamp) -> Facts:
    async def look(statement: str, **params: object) -> Sequence[Row]:
        return await tx.fetch(statement, at=at, most=watched.most, **params)

    [clock] = await tx.fetch("now", at=at)
    [standing] = await tx.fetch("watch_scheduled", at=at)
    lists, scanned, lately = _Lists(watched.most), watched.scanned, watched.failed_window
    overdue = await look("watch_overdue", missed_after=watched.missed_after, scanned=scanned, burst=BURST)
    dropped = await look("watch_dropped", dropped_window=watched.dropped_window, scanned=scanned)
    expected = await look("watch_expecting")
    stale = await look("watch_stale", late_after=watched.late_after, scanned=scanned)
    waiting = await look("watch_waiting")
    lost = await look("watch_lost", lost_window=watched.lost_window)
    died = await look("watch_died", failed_window=lately, counted=COUNTED)
    [grown] = await look(
        "watch_grown", dead_window=watched.dead_window, counted=max(COUNTED, watched.dead_growth)
    )
    failing = await look("watch_failing", failing=watched.failing, streak=watched.streak, scanned=scanned)
    failing = lists.cut("failing", failing)
    runs = await tx.fetch(
        "watch_streaks", schedule_ids=[row["schedule_id"] for row in failing], streak=watched.streak
    )
    return Facts(
        now=moment(clock["now"]),
        processes=tuple(map(_process, await tx.fetch("processes", at=at))),
        lost=tuple(map(_lost, lists.cut("lost", lost))),
        scheduled=bool(standing["scheduled"]),
        behind_since=maybe_moment(standing["behind_since"]),
        overdue=tuple(map(_overdue, lists.cut("overdue", overdue))),
        dropped=tuple(map(_dropped, lists.cut("dropped", dropped))),
        late=(
            *map(_expected, lists.cut("expected", expected, times=2)),
            *(
                _stale(row, claimed=False, begun=False, expect_start_within=None, expect_finish_by=None)
                for row in lists.cut("stale", stale)
                if row["schedule"] is not None
            ),
        ),
        waiting=tuple(map(_waiting, lists.cut("waiting", waiting, times=10))),
        pauses=tuple(map(_pause, await tx.fetch("queue_pauses"))),
        died=tuple(map(_died, lists.cut("died", died))),
        grown=grown["grown"],
        grown_since=maybe_moment(grown["since"]),
        streaks=_streaks(
            (row["schedule"], moment(row["slot_at"]), bool(row["dead"]), bool(row["live"])) for row in runs
        ),
        retrying=tuple(map(_retrying, lists.cut("retrying", await look("watch_retrying")))),
        gaps=tuple(map(_gap, await look("watch_gaps", failed_window=lately))),
        cut=lists.rules,
    )


class _Lists:
    """Cuts lists to the number that may be named, and keeps the rules of the cut lists."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._cut: dict[Rule, None] = {}

    def cut(self, name: str, rows: Sequence[T], *, times: int = 1) -> Sequence[T]:
        """The rows that may be named; `times` is how many rows one name may have."""
        if len(rows) <= times * self._most:
            return rows
        self._cut.update(dict.fromkeys(OF_LISTS[name]))
        return rows[: times * self._most]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules whose lists were cut."""
        return tuple(self._cut)


def _streaks(looked_at: Iterable[tuple[str, datetime, bool, bool]]) -> tuple[Streak, ...]:
    """Streaks from (schedule, slot, dead, live), newest slot first for each schedule. A live job is skipped.
    A job that ended in another way ends the streak."""
    found = []
    for name, slots in groupby(looked_at, key=lambda each: each[0]):
        dead: list[datetime] = []
        for _, slot_at, is_dead, is_live in slots:
            if is_dead:
                dead.append(slot_at)
            elif not is_live:
                break
        if dead:
            found.append(Streak(schedule=name, failures=len(dead), since=dead[-1]))
    return tuple(found)
