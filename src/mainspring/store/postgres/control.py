"""Writing schedules on PostgreSQL: every change is a new version, in the same transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec

from mainspring.model.calendar import StoredCalendar
from mainspring.model.schedule import Change, NewSchedule, Skipped
from mainspring.store.codes import CODE, catch_up_code, refuse_outdated, spec_catch_up
from mainspring.store.declaring import (
    NO_BREAKER,
    Changing,
    Said,
    arrears,
    batches,
    named_change,
    names_calendar,
)
from mainspring.store.ports import Expected, Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.lines import Lines
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.troubles import PartitionMoved
from mainspring.store.postgres.wake import Notifier
from mainspring.trigger.misfire import LATE

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

T = TypeVar("T")
Done: TypeAlias = tuple[T | None, int]
"""What a transaction has done, or None when it must be followed by another; and how many jobs it made."""


class PostgresControl:
    """The operator's half of ScheduleStore on PostgreSQL."""

    def __init__(self, database: Database, names: Names, lines: Lines, notifier: Notifier) -> None:
        self._database = database
        self._names = names
        self._lines = lines
        self._notifier = notifier

    async def put_schedules(
        self,
        schedules: Sequence[NewSchedule],
        *,
        author: str | None = None,
        note: str | None = None,
        expected: Expected | None = None,
        at: Stamp,
    ) -> list[str]:
        changed: list[str] = []
        for batch in batches(schedules, expected):
            changed += await self._put(batch, author, note, expected or {}, at)
        return changed

    async def _put(
        self, batch: list[NewSchedule], author: str | None, note: str | None, expected: Expected, at: Stamp
    ) -> list[str]:
        """Most are as they are said to be, which is seen without a lock. The others are written in one
        transaction; what somebody else made at that very moment is compared anew."""
        changed: list[str] = []
        by_hand = author is not None
        left = [
            Said(new=new, line_id=line_id)
            for new, line_id in zip(
                batch, await self._lines.ids(each.gates or () for each in batch), strict=True
            )
        ]
        while left:
            if not expected:
                names = [each.new.name for each in left]
                found = await self._database.fetch("standing_schedules", names=names)
                left = await self._differing(left, found, by_hand)
            if left or expected:
                await self._number(each.new for each in left)
                written, left = await self._whole(
                    "put_schedules", partial(self._write, left, author, note, expected, at)
                )
                changed += written
        return changed

    async def _number(self, schedules: Iterable[NewSchedule]) -> None:
        """Make sure that what they name has its numbers: inside their transaction it is too late."""
        places = [(each.queue, each.task, each.priority) for each in schedules]
        queue_ids = await self._names.queue_ids(queue for queue, _, _ in places)
        await self._names.task_ids(task for _, task, _ in places)
        await self._names.ensure_lanes(
            {(queue_id, priority) for queue_id, (_, _, priority) in zip(queue_ids, places, strict=True)}
        )

    async def _write(
        self,
        said: list[Said],
        author: str | None,
        note: str | None,
        expected: Expected,
        at: Stamp,
        transaction: Transaction,
    ) -> Done[tuple[list[str], list[Said]]]:
        """What is there is locked by id, as fires lock it; then come specs by trigger, then new schedules by
        name: processes that start together lock in one order. Answers the names that were written, and what
        another process made at the same moment."""
        by_hand = author is not None
        found = await self._lock(transaction, {each.new.name for each in said} | expected.keys())
        if expected:
            refuse_outdated(expected, {row["name"]: (row["id"], row["version"]) for row in found})
        said = await self._differing(said, found, by_hand, within=transaction)
        standing = {row["name"]: row for row in found}
        specs = _specs([each.new for each in said])
        await transaction.fetch("put_specs", **specs)
        await transaction.fetch(
            "hold_specs", triggers=specs["triggers"], spec_catch_ups=specs["spec_catch_ups"]
        )
        now = await _moment(transaction, at)
        fresh = [each for each in said if each.new.name not in standing]
        known = [each for each in said if each.new.name in standing]
        whole, fired = await self._decide(transaction, [standing[each.new.name] for each in known], None, now)
        if not whole:
            return None, fired
        added = await transaction.fetch(
            "add_schedules", **await self._columns(transaction, fresh), by_hand=by_hand, at=now
        )
        await transaction.fetch(
            "change_schedules",
            **await self._columns(transaction, known),
            ids=[standing[each.new.name]["id"] for each in known],
            keep_lines=[each.new.gates is None for each in known],
            by_hand=by_hand,
            at=now,
        )
        made = {row["name"] for row in added} | standing.keys()
        late = [each for each in fresh if each.new.name not in made]
        if expected and late:
            refuse_outdated({late[0].new.name: None}, {late[0].new.name: (0, 0)})
        written = [each.new.name for each in said if each.new.name in made]
        await self._add_versions(transaction, written, Change.CHANGED, author or CODE, note, now)
        return (written, late), fired

    async def _differing(
        self, said: list[Said], found: list[Record], by_hand: bool, within: Transaction | None = None
    ) -> list[Said]:
        """Those that are not as they are said to be."""
        queue_ids, task_ids = {row["queue_id"] for row in found}, {row["task_id"] for row in found}
        await self._names.learn(queue_ids, task_ids, within=within)
        standing = {row["name"]: rows.schedule(row, self._names) for row in found}
        return [each for each in said if each.differs(standing.get(each.new.name), by_hand=by_hand)]

    async def _columns(self, transaction: Transaction, said: list[Said]) -> dict[str, object]:
        news = [each.new for each in said]
        await self._names.know({new.queue for new in news}, {new.task for new in news}, within=transaction)
        return {
            "names": [new.name for new in news],
            "triggers": [new.trigger for new in news],
            "spec_catch_ups": [spec_catch_up(new) for new in news],
            "queue_ids": [self._names.known_queue(new.queue) for new in news],
            "task_ids": [self._names.known_task(new.task) for new in news],
            "line_ids": [each.line_id for each in said],
            "priorities": [new.priority for new in news],
            "max_attemptss": [new.max_attempts for new in news],
            "payloads": [new.payload for new in news],
            "misfires": [new.misfire for new in news],
            "catch_ups": [catch_up_code(new.catch_up) for new in news],
            "overlaps": [new.overlap for new in news],
            "overlap_limits": [new.overlap_limit for new in news],
            "offset_bys": [new.offset for new in news],
            "jitters": [new.jitter for new in news],
            "max_firess": [new.max_fires for new in news],
            "expires_afters": [new.expires for new in news],
            "expect_start_withins": [new.expect_start_within for new in news],
            "expect_finish_bys": [new.expect_finish_by for new in news],
        }

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        async def work(transaction: Transaction) -> Done[list[str]]:
            # A fire under way holds these rows FOR SHARE: this waits for it, and the next one sees the pause.
            found = await self._lock(transaction, names)
            now = await _moment(transaction, at)
            found = [row for row in found if row["paused_at"] is None]
            whole, fired = await self._decide(transaction, found, Skipped.PAUSED, now)
            if not whole:
                return None, fired
            paused = [row["name"] for row in found]
            await transaction.fetch("pause_schedules", names=paused, author=author, note=note, at=now)
            await self._add_versions(transaction, paused, Change.PAUSED, author, note, now)
            return paused, fired

        return await self._whole("pause_schedules", work)

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        async def work(transaction: Transaction) -> Done[list[str]]:
            found = await self._lock(transaction, names)
            now = await _moment(transaction, at)
            found = [row for row in found if row["paused_at"] is not None]
            whole, fired = await self._decide(transaction, found, None, now)
            if not whole:
                return None, fired
            resumed = [row["name"] for row in found]
            await transaction.fetch("resume_schedules", names=resumed, at=now)
            await self._add_versions(transaction, resumed, Change.RESUMED, author, None, now)
            return resumed, fired

        return await self._whole("resume_schedules", work)

    async def hand_back_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        async with self._database.transaction("hand_back_schedules") as transaction:
            await self._lock(transaction, names)
            now = await _moment(transaction, at)
            handed = [
                row["name"] for row in await transaction.fetch("hand_back_schedules", names=list(names))
            ]
            await self._add_versions(transaction, handed, Change.HANDED_BACK, author, note, now)
            return handed

    async def skip_slots(self, name: str, *, count: int, author: str, at: Stamp) -> bool:
        async def work(transaction: Transaction) -> Done[bool]:
            found = await self._lock(transaction, [name])
            now = await _moment(transaction, at)
            whole, fired = await self._decide(transaction, found, None, now)
            if not whole:
                return None, fired
            await transaction.fetch("skip_slots", name=name, count=count)
            skipping = [row["name"] for row in found]
            await self._add_versions(transaction, skipping, Change.SKIPPING, author, None, now)
            return bool(found), fired

        return await self._whole("skip_slots", work)

    async def trigger_schedule(self, name: str, *, at: Stamp) -> int | None:
        found = await self._database.fetch("trigger_schedule", name=name, at=at)
        if not found:
            return None
        self._notifier.poke()
        job_id: int = found[0]["id"]
        return job_id

    async def delete_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        async def work(transaction: Transaction) -> Done[list[str]]:
            found = await self._lock(transaction, names)
            now = await _moment(transaction, at)
            whole, fired = await self._decide(transaction, found, Skipped.DELETED, now)
            if not whole:
                return None, fired
            doomed = [row["name"] for row in found]
            # The last version is numbered after the one that stands, which it ends.
            await self._add_versions(transaction, doomed, Change.DELETED, author, None, now, number=1)
            await transaction.fetch("delete_schedules", ids=[row["id"] for row in found])
            return doomed, fired

        return await self._whole("delete_schedules", work)

    async def _whole(self, what: str, work: Callable[[Transaction], Awaitable[Done[T]]]) -> T:
        """Until it has been done: where more is due before a change than one transaction should decide, it
        takes several, and whoever reads in between finds the schedules as they were."""
        moved = False
        while True:
            try:
                async with self._database.transaction(what) as transaction:
                    done, fired = await work(transaction)
            except PartitionMoved:
                if moved:
                    raise
                moved = True  # nothing of it has happened, and it is sure to see the new partition now
                continue
            if fired:
                self._notifier.poke(fired)
            if done is not None:
                return done

    async def _lock(self, transaction: Transaction, names: Iterable[str]) -> list[Record]:
        """Those that are there, by name. One that is made at this moment is not among them: nobody has its
        lock."""
        names = list(names)
        locked = {row["id"] for row in await transaction.fetch("lock_schedules", names=names)}
        found = await transaction.fetch("standing_schedules", names=names) if locked else []
        return sorted((row for row in found if row["id"] in locked), key=lambda row: str(row["name"]))

    async def _decide(
        self, transaction: Transaction, found: Sequence[Record], skip: Skipped | None, now: datetime
    ) -> tuple[bool, int]:
        """Decide what was due of these schedules, whose rows are locked, as they stand; whether that was all,
        and how many jobs it made. Of one that is paused its pause is why nothing is run."""
        if not found:
            return True, 0
        due = await transaction.fetch("overdue_specs", ids=list({row["spec_id"] for row in found}), now=now)
        if not due:
            return True, 0
        specs = {row["id"]: rows.spec(row) for row in due if row["due"]}
        calendars = await transaction.fetch("calendars") if names_calendar(specs.values()) else []
        left = arrears(
            [
                Changing(
                    id=row["id"],
                    spec_id=row["spec_id"],
                    active_from=row["active_from"],
                    skip=skip if row["paused_at"] is None else None,
                )
                for row in found
            ],
            specs,
            [rows.open_fire(row) for row in due if row["slot_at"] is not None],
            [StoredCalendar(**dict(row)) for row in calendars],
            now,
        )
        made = 0
        for each in left.rounds:
            [row] = await transaction.fetch(
                "decide_slots",
                ids=[one.schedule.id for one in each],
                slot_ats=[one.opening.slot_at for one in each],
                sinces=[one.opening.since for one in each],
                combineds=[rows.combined(one.opening) for one in each],
                skips=[one.skip for one in each],
                notes=[one.opening.note for one in each],
                missed_after=LATE,
                breaker=NO_BREAKER,
                at=now,
            )
            made += row["fired"]
        begins = left.active_from(now)
        if begins:
            await transaction.fetch("move_active", ids=list(begins), moments=list(begins.values()))
        return left.whole, made

    async def _add_versions(
        self,
        transaction: Transaction,
        names: list[str],
        change: Change,
        author: str,
        note: str | None,
        at: Stamp,
        *,
        number: int = 0,
    ) -> None:
        found = await transaction.fetch("standing_schedules", names=names) if names else []
        queue_ids, task_ids = {row["queue_id"] for row in found}, {row["task_id"] for row in found}
        await self._names.learn(queue_ids, task_ids, within=transaction)
        schedules = [rows.schedule(row, self._names) for row in found]
        await transaction.fetch(
            "add_versions",
            schedule_ids=[each.id for each in schedules],
            versions=[each.version + number for each in schedules],
            names=[each.name for each in schedules],
            changes=[named_change(change, each) for each in schedules],
            definitions=[msgspec.json.encode(each).decode() for each in schedules],
            author=author,
            note=note,
            at=at,
        )


async def _moment(transaction: Transaction, at: Stamp) -> datetime:
    [row] = await transaction.fetch("moment", at=at)
    now: datetime = row["now"]
    return now


def _specs(schedules: list[NewSchedule]) -> dict[str, object]:
    once = {(each.trigger, spec_catch_up(each)): each for each in schedules}
    return {
        "triggers": [trigger for trigger, _ in once],
        "spec_catch_ups": [catch_up for _, catch_up in once],
        "next_ats": [each.next_at for each in once.values()],
        "following_ats": [each.following_at for each in once.values()],
    }
