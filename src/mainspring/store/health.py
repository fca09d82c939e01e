"""How the store is: what stands out in it, how its database does, and rows that cannot be read."""

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
"""Seconds after a look that found nothing: the trouble is another, and a look reads whole tables."""
HERD = 50
"""Schedules of one burst that are named as overdue."""
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
"""Whose rules have more to tell where a list was cut."""

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
    """What everybody asks is written here; what only one kind of database can tell is its own."""

    def __init__(self, database: Database, schema: Schema) -> None:
        self._database = database
        self._schema = schema
        self._look = asyncio.Lock()
        self._looks = 0
        self._look_again_at = 0.0

    @reads
    async def watch(self, watched: Watched, *, at: Stamp) -> Facts:
        """What stands out now, by the store's clock: one bounded look at everything that alerts, the overview
        and `status` judge."""

        async def work(tx: Transaction) -> Facts:
            return await _facts(tx, watched, at)

        return await self._database.reading("watch", work)

    @abstractmethod
    async def look(self) -> StoreHealth:
        """What the database tells of itself. No more rights are needed than for everything else; what they do
        not suffice for is named."""

    @abstractmethod
    async def damage(self) -> list[str] | None:
        """Read the whole file and answer what is broken in it; None for a server, which does that by itself
        and cannot be asked. Takes as long as reading the file does."""

    @abstractmethod
    async def facts(self) -> dict[str, str]:
        """What an operator wants to know about the engine: its version and relevant settings."""

    @abstractmethod
    async def is_down(self) -> bool:
        """Whether the store itself is known to take calls from nobody: its host refuses sessions, it says
        that it is starting or stopping, its file is locked. No answer is no knowledge: then it may be only
        us."""

    async def set_aside(self) -> list[UnreadableRow]:
        """Move every row that cannot be read into `unreadable_rows`, whole, and answer which they were.
        Reads whole tables: for when something met such a row. Nothing is done where the schema is not this
        version's, for what we cannot read may be a newer one's."""
        await self._schema.verify()
        return await self._set_aside()

    @abstractmethod
    async def _set_aside(self) -> list[UnreadableRow]:
        """Move them."""

    async def left_out(self, error: Exception) -> bool:
        """After an error: whether rows in the way were looked for, and what was found was set aside and
        logged. One look at a time, and after one that found nothing a pause."""
        if isinstance(error, StoreUnavailable | AnswerLost | SchemaMismatch | StoreFull):
            return False
        if isinstance(error, MainspringError) and type(error) not in (StoreError, Unreadable):
            return False
        before, loop = self._looks, asyncio.get_running_loop()
        async with self._look:
            if self._looks > before:
                return True  # another call has looked since this one failed
            if loop.time() < self._look_again_at:
                return False
            try:
                found = await self.set_aside()
            except StoreError:
                return False  # the first error is the one to tell
            self._looks += 1
            if not found:
                self._look_again_at = loop.time() + LOOK_AGAIN  # counted from now: a look may take minutes
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
    overdue = await look("watch_overdue", missed_after=watched.missed_after, scanned=scanned, burst=HERD)
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
    """Cuts lists to what may be named, and keeps which rules they were for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._cut: dict[Rule, None] = {}

    def cut(self, name: str, rows: Sequence[T], *, times: int = 1) -> Sequence[T]:
        """As many as may be named; `times` is how many rows there may be for each."""
        if len(rows) <= times * self._most:
            return rows
        self._cut.update(dict.fromkeys(OF_LISTS[name]))
        return rows[: times * self._most]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Those with more to tell."""
        return tuple(self._cut)


def _streaks(looked_at: Iterable[tuple[str, datetime, bool, bool]]) -> tuple[Streak, ...]:
    """Of (schedule, slot, dead, live), newest slot first for each schedule. A job that is still live says
    nothing yet; one that ended otherwise ends the row."""
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
