"""Schedules. Every change writes a new version in the same transaction."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from mainspring.model.schedule import (
    Change,
    NewSchedule,
    Opening,
    Schedule,
    ScheduleCounts,
    ScheduleFilter,
    SchedulePage,
    ScheduleRow,
    ScheduleVersion,
    Skipped,
    StoredCalendar,
)
from mainspring.store.audit_log import carried_out, carried_out_alone
from mainspring.store.codes import CODE, catch_up_code, catch_up_read, spec_catch_up
from mainspring.store.database import Database, Row, Stamp, Transaction, reads
from mainspring.store.declaring import (
    Changing,
    Expected,
    OpenFiring,
    Said,
    arrears,
    batches,
    named_change,
    names_calendar,
    refuse_outdated,
)
from mainspring.store.limits import Places
from mainspring.store.rows import length, maybe_length, maybe_moment, moment, reader, written
from mainspring.store.slots import Firing, read_slot, read_spec

T = TypeVar("T")

LOOK = 100_000
"""The number of schedules that one page reads, at most."""
MOST_COUNTED = 1_000_000

_definition = msgspec.json.Decoder(Schedule)
_moments = msgspec.json.Decoder(tuple[int | datetime, ...])
_calendar = reader(StoredCalendar)
_schedule = reader(
    Schedule,
    catch_up=lambda row: catch_up_read(length(row["catch_up"])),
    offset=lambda row: length(row["offset_by"]),
    expires=lambda row: maybe_length(row["expires_after"]),
)
_version = reader(ScheduleVersion, schedule=lambda row: _definition.decode(row["definition"]))
_counts = reader(ScheduleCounts, more=lambda row: row["total"] == MOST_COUNTED)


_Written = tuple[list[str], list[Said]]


class Schedules:
    """Schedules by name.

    Every change of a schedule first decides, in the same transaction, the slots that were due until then and
    are not in the ledger. It uses the present version, as a firing at this moment would. The new version
    begins at that moment. After a very long outage this takes several transactions, and the last transaction
    makes the change.
    """

    def __init__(self, database: Database, places: Places, firing: Firing) -> None:
        self._database = database
        self._places = places
        self._firing = firing

    # Orders.

    async def put(
        self,
        schedules: Sequence[NewSchedule],
        *,
        author: str | None = None,
        note: str | None = None,
        expected: Expected | None = None,
        at: Stamp,
    ) -> list[str]:
        """Write schedules by name, each change as a new version; answer the names that were new or changed. A
        schedule that has not changed is neither written nor locked, so any number of processes may declare
        it. The other schedules are written in batches of some hundred, each batch in a transaction; with
        `expected`, all in one transaction. Without an author the caller is code: schedules that an operator
        has edited stay. If a schedule is not as `expected`, nothing is written, and the call raises
        Outdated."""
        changed: list[str] = []
        for batch in batches(schedules, expected):
            changed += await self._put(batch, author, note, expected or {}, at)
        return changed

    async def pause(self, names: Sequence[str], *, author: str, note: str | None, at: Stamp) -> list[str]:
        """Skip the slots of these schedules as paused from now on, and also slots that were due; answer the
        names that were not paused. When this call returns, no earlier firing can still make a job for
        them."""

        async def work(tx: Transaction) -> list[str] | None:
            # A firing under way has locked these rows: this waits for the firing, and the next firing sees
            # the pause.
            found = [row for row in await _lock(tx, names) if row["paused_at"] is None]
            now = await _now(tx, at)
            if not await self._decide(tx, found, Skipped.PAUSED, now):
                return None
            paused = [row["name"] for row in found]
            await tx.fetch("pause_schedules", names=paused, author=author, note=note, at=now)
            await _add_versions(tx, paused, Change.PAUSED, author, note, now)
            return paused

        return await self._whole("pause_schedules", work)

    async def resume(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """End the pauses; answer the names that were paused. Slots of a pause are not caught up."""

        async def work(tx: Transaction) -> list[str] | None:
            found = [row for row in await _lock(tx, names) if row["paused_at"] is not None]
            now = await _now(tx, at)
            if not await self._decide(tx, found, None, now):
                return None
            resumed = [row["name"] for row in found]
            await tx.fetch("resume_schedules", names=resumed, at=now)
            await _add_versions(tx, resumed, Change.RESUMED, author, None, now)
            return resumed

        return await self._whole("resume_schedules", work)

    async def revert(self, names: Sequence[str], *, author: str, note: str | None, at: Stamp) -> list[str]:
        """Give edited schedules back to the code: the next declaration counts. Nothing else changes until
        then. The answer has the names that were edited."""

        async def work(tx: Transaction) -> list[str]:
            await _lock(tx, names)
            now = await _now(tx, at)
            reverted = [row["name"] for row in await tx.fetch("revert_schedules", names=list(names))]
            await _add_versions(tx, reverted, Change.REVERTED, author, note, now)
            return reverted

        return await carried_out(self._database, "revert_schedules", work)

    async def skip(self, name: str, *, count: int, author: str, at: Stamp) -> int:
        """Skip `count` more of the next slots, as requested; answer how many slots will be skipped in all, 0
        when there is no such schedule."""

        async def work(tx: Transaction) -> int | None:
            found = await _lock(tx, [name])
            now = await _now(tx, at)
            if not await self._decide(tx, found, None, now):
                return None
            await tx.fetch("skip_slots", name=name, count=count)
            changed = await _add_versions(
                tx, [row["name"] for row in found], Change.SKIPPING, author, None, now
            )
            return sum(each.skips for each in changed)

        return await self._whole("skip_slots", work)

    async def trigger(self, name: str, *, at: Stamp) -> int | None:
        """Make a job of this schedule now, without a slot and without its policies; answer its id, or None
        when there is no such schedule."""
        job_id: int | None = await carried_out_alone(
            self._database,
            "trigger_schedule",
            lambda rows: rows[0]["id"] if rows else None,
            name=name,
            at=at,
        )
        if job_id is not None:
            self._database.hint()
        return job_id

    async def delete(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        """Delete schedules. Their ledger and versions stay, and slots that were due are skipped as deleted.
        The answer has the names of the deleted schedules."""

        async def work(tx: Transaction) -> list[str] | None:
            found = await _lock(tx, names)
            now = await _now(tx, at)
            if not await self._decide(tx, found, Skipped.DELETED, now):
                return None
            doomed = [row["name"] for row in found]
            # The last version has the number after the present version, which it ends.
            await _add_versions(tx, doomed, Change.DELETED, author, None, now, number=1)
            await tx.fetch("delete_schedules", ids=[row["id"] for row in found])
            return doomed

        return await self._whole("delete_schedules", work)

    # Questions.

    @reads
    async def all(self) -> list[Schedule]:
        """Every schedule, by name."""
        return [_schedule(row) for row in await self._database.fetch("schedules", names=None)]

    @reads
    async def get(self, name: str) -> Schedule | None:
        """One schedule."""
        found = await self._database.fetch("schedules", names=[name])
        return _schedule(found[0]) if found else None

    @reads
    async def some(self, names: Sequence[str]) -> dict[str, Schedule]:
        """The schedules of these names, by name. A name without a schedule is left out."""
        found = map(_schedule, await self._database.fetch("schedules", names=list(names)))
        return {each.name: each for each in found}

    @reads
    async def undeclared(self, declared: Sequence[str], *, limit: int) -> list[str]:
        """Names of schedules that still fire and are not in `declared`, by name, at most `limit`."""
        found = await self._database.fetch("undeclared_schedules", declared=list(declared), limit=limit)
        return [row["name"] for row in found]

    @reads
    async def names(self) -> list[str]:
        """Every name on record, also of schedules that were deleted."""
        return [row["name"] for row in await self._database.fetch("schedule_names")]

    @reads
    async def name_of(self, schedule_id: int) -> str | None:
        """The name of a schedule, also of a deleted schedule."""
        [row] = await self._database.fetch("name_of_schedule", schedule_id=schedule_id)
        name: str | None = row["name"]
        return name

    @reads
    async def versions(self, name: str) -> list[ScheduleVersion]:
        """Every version of one schedule, also of a deleted schedule, oldest first."""
        return [_version(row) for row in await self._database.fetch("versions", name=name)]

    @reads
    async def page(self, which: ScheduleFilter, *, at: Stamp) -> SchedulePage:
        """Schedules by name, each with its newest slot. It reads a bounded number of rows."""
        page = await self._database.fetch(
            "schedules_page",
            text=which.text,
            task=which.task,
            queue=which.queue,
            only=which.only,
            late=which.late,
            after=which.after or "",
            look=LOOK,
            limit=which.limit + 1,
            at=at,
        )
        fitting = [row for row in page if row["fits"]]
        shown = tuple(_with_newest_slot(row) for row in fitting[: which.limit])
        if len(fitting) > which.limit:
            return SchedulePage(rows=shown, next=fitting[which.limit - 1]["name"])
        last = page[-1]["name"] if page and page[-1]["is_last"] else None
        return SchedulePage(rows=shown, next=last, partial=last is not None)

    @reads
    async def counts(self, *, late: timedelta, at: Stamp) -> ScheduleCounts:
        """The numbers of schedules. A schedule is overdue if its slot is `late` or more behind."""
        [row] = await self._database.fetch("schedule_counts", late=late, look=MOST_COUNTED, at=at)
        return _counts(row)

    # Writing.

    async def _put(
        self, batch: list[NewSchedule], author: str | None, note: str | None, expected: Expected, at: Stamp
    ) -> list[str]:
        """Write a batch. Most schedules are as declared, which is found without a lock. The other schedules
        are written in one transaction. A schedule that another process made at the same moment is compared
        again."""
        changed: list[str] = []
        by_hand = author is not None
        lines = await self._places.lines(each.limit_keys or () for each in batch)
        left = [
            Said(new=new, limit_set_id=limit_set_id) for new, limit_set_id in zip(batch, lines, strict=True)
        ]
        while left:
            if not expected:
                names = [each.new.name for each in left]
                found = await self._database.fetch("standing_schedules", names=names)
                left = _differing(left, found, by_hand)
            if left or expected:
                await self._places.priority_levels(
                    [(each.new.queue, each.new.task, each.new.priority) for each in left]
                )
                said = left

                async def work(tx: Transaction, said: list[Said] = said) -> _Written | None:
                    return await self._write(tx, said, author, note, expected, at)

                names, left = await self._whole("put_schedules", work, _names_written)
                changed += names
        return changed

    async def _write(
        self,
        tx: Transaction,
        said: list[Said],
        author: str | None,
        note: str | None,
        expected: Expected,
        at: Stamp,
    ) -> _Written | None:
        """Lock schedules by id, as firings do; then specs by trigger; then new schedules by name. So
        processes that start at the same time lock in one order. The answer has the names that were written,
        and the schedules that another process made at the same moment; it is None if more slots have to be
        decided first."""
        by_hand = author is not None
        found = await _lock(tx, {each.new.name for each in said} | expected.keys())
        if expected:
            refuse_outdated(expected, {row["name"]: (row["id"], row["version"]) for row in found})
        said = _differing(said, found, by_hand)
        standing = {row["name"]: row for row in found}
        await _put_specs(tx, [each.new for each in said])
        now = await _now(tx, at)
        fresh = [each for each in said if each.new.name not in standing]
        known = [each for each in said if each.new.name in standing]
        if not await self._decide(tx, [standing[each.new.name] for each in known], None, now):
            return None
        added = await tx.each("add_schedules", [_columns(each) for each in fresh], by_hand=by_hand, at=now)
        await tx.each(
            "change_schedules",
            [
                _columns(each)
                | {"id": standing[each.new.name]["id"], "keep_limit_set": each.new.limit_keys is None}
                for each in known
            ],
            by_hand=by_hand,
            at=now,
        )
        made = {row["name"] for row in added} | standing.keys()
        late = [each for each in fresh if each.new.name not in made]
        if expected and late:
            refuse_outdated({late[0].new.name: None}, {late[0].new.name: (0, 0)})
        names = [each.new.name for each in said if each.new.name in made]
        await _add_versions(tx, names, Change.CHANGED, author or CODE, note, now)
        return names, late

    async def _whole(
        self,
        what: str,
        work: Callable[[Transaction], Coroutine[Any, Any, T | None]],
        outcome: Callable[[T | None], object] = lambda done: done,
    ) -> T:
        """Repeat the work until the change is made. If more slots are due before a change than one
        transaction should decide, several transactions decide them. A reader in between finds the schedules
        as they were. The last transaction makes the change, and writes the entry of the audit log."""
        while (done := await carried_out(self._database, what, work, outcome=outcome)) is None:
            pass
        return done

    async def _decide(
        self, tx: Transaction, found: Sequence[Row], skip: Skipped | None, now: datetime
    ) -> bool:
        """Decide the slots of these schedules that were due, by their present versions; answer whether these
        were all. The rows are locked. For a paused schedule, the pause is the reason why no job is made."""
        if not found:
            return True
        due = await tx.fetch("overdue_specs", ids=sorted({row["spec_id"] for row in found}), at=now)
        if not due:
            return True
        specs = {row["id"]: read_spec(row) for row in due if row["due"]}
        calendars = await tx.fetch("calendars") if names_calendar(specs.values()) else []
        left = arrears(
            [
                Changing(
                    id=row["id"],
                    spec_id=row["spec_id"],
                    active_from=moment(row["active_from"]),
                    skip=skip if row["paused_at"] is None else None,
                )
                for row in found
            ],
            specs,
            [_open_firing(row) for row in due if row["slot_at"] is not None],
            [_calendar(row) for row in calendars],
            now,
        )
        for each in left.rounds:
            if made := await self._firing.decide(tx, each, at=now):
                tx.hint(made)
        begins = [{"id": key, "moment": begin} for key, begin in left.active_from(now).items()]
        await tx.each("move_active", begins)
        return left.whole


def _names_written(written: _Written | None) -> list[str]:
    return [] if written is None else written[0]


async def _lock(tx: Transaction, names: Iterable[str]) -> list[Row]:
    """Lock the schedules of these names; answer them by name. A schedule that another process makes at this
    moment is left out, because it is not locked."""
    names = list(names)
    locked = {row["id"] for row in await tx.fetch("lock_schedules", names=names)}
    found = await tx.fetch("standing_schedules", names=names) if locked else []
    return sorted((row for row in found if row["id"] in locked), key=lambda row: str(row["name"]))


async def _now(tx: Transaction, at: Stamp) -> datetime:
    """The moment of now, not of the begin of the transaction: the transaction may have waited for a firing
    since then."""
    [row] = await tx.fetch("moment", at=at)
    return moment(row["now"])


def _differing(said: list[Said], found: Sequence[Row], by_hand: bool) -> list[Said]:
    """The schedules that are not as declared."""
    standing = {row["name"]: _schedule(row) for row in found}
    return [each for each in said if each.differs(standing.get(each.new.name), by_hand=by_hand)]


async def _put_specs(tx: Transaction, schedules: list[NewSchedule]) -> None:
    once = {(each.trigger, spec_catch_up(each)): each for each in schedules}
    specs = [
        {
            "trigger": trigger,
            "spec_catch_up": catch_up,
            "next_at": each.next_at,
            "following_at": each.following_at,
        }
        for (trigger, catch_up), each in once.items()
    ]
    await tx.each("put_specs", specs)
    await tx.fetch(
        "hold_specs",
        triggers=[each["trigger"] for each in specs],
        spec_catch_ups=[each["spec_catch_up"] for each in specs],
    )


def _columns(said: Said) -> dict[str, object]:
    new = said.new
    return {
        "name": new.name,
        "trigger": new.trigger,
        "spec_catch_up": spec_catch_up(new),
        "queue": new.queue,
        "task": new.task,
        "limit_set_id": said.limit_set_id,
        "priority": new.priority,
        "max_attempts": new.max_attempts,
        "payload": new.payload,
        "misfire": new.misfire,
        "catch_up": catch_up_code(new.catch_up),
        "overlap": new.overlap,
        "overlap_limit": new.overlap_limit,
        "offset_by": new.offset,
        "jitter": new.jitter,
        "max_fires": new.max_fires,
        "expires_after": new.expires,
        "expect_start_within": new.expect_start_within,
        "expect_finish_by": new.expect_finish_by,
    }


async def _add_versions(
    tx: Transaction,
    names: list[str],
    change: Change,
    author: str,
    note: str | None,
    at: datetime,
    *,
    number: int = 0,
) -> list[Schedule]:
    """Record the schedules as they are now; answer them."""
    found = await tx.fetch("standing_schedules", names=names) if names else []
    schedules = [_schedule(row) for row in found]
    await tx.each(
        "add_versions",
        [
            {
                "schedule_id": each.id,
                "version": each.version + number,
                "name": each.name,
                "change": named_change(change, each),
                "definition": written(each),
            }
            for each in schedules
        ],
        author=author,
        note=note,
        at=at,
    )
    return schedules


def _open_firing(row: Row) -> OpenFiring:
    slot_at = moment(row["slot_at"])
    return OpenFiring(
        opening=Opening(
            spec_id=row["id"],
            expected=slot_at,
            slot_at=slot_at,
            since=maybe_moment(row["since"]),
            combined=tuple(map(moment, _moments.decode(row["combined"] or "[]"))),
            next_at=None,
            skip=None if row["skip"] is None else Skipped(row["skip"]),
            note=row["note"],
        ),
        last_id=row["last_id"],
        until_id=row["until_id"],
    )


def _with_newest_slot(row: Row) -> ScheduleRow:
    return ScheduleRow(schedule=_schedule(row), last=None if row["slot_at"] is None else read_slot(row))
