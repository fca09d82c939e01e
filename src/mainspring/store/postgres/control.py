"""Writing schedules on PostgreSQL: every change is a new version, in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from mainspring.model.schedule import Change, NewSchedule
from mainspring.store.codes import CODE, refuse_outdated, spec_catch_up
from mainspring.store.ports import Expected, Stamp
from mainspring.store.postgres import rows
from mainspring.store.postgres.connection import Database, Transaction
from mainspring.store.postgres.lines import Lines
from mainspring.store.postgres.names import Names
from mainspring.store.postgres.wake import Notifier

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record


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
        queue_ids = await self._names.queue_ids(s.queue for s in schedules)
        task_ids = await self._names.task_ids(s.task for s in schedules)
        await self._names.ensure_lanes({(q, s.priority) for q, s in zip(queue_ids, schedules, strict=True)})
        fresh = {name for name, read in (expected or {}).items() if read is None}
        line_ids = await self._lines.ids(s.gates or () for s in schedules)
        numbered = sorted(
            zip(schedules, queue_ids, task_ids, line_ids, strict=True), key=lambda each: each[0].name
        )
        async with self._database.transaction("put_schedules") as transaction:
            # What is there by id, as fires lock it; then specs by trigger, then new schedules by name:
            # processes that start together lock in one order.
            await transaction.fetch("lock_schedules", names=[schedule.name for schedule in schedules])
            if expected:
                standing = await transaction.fetch("schedules", names=list(expected))
                refuse_outdated(expected, {row["name"]: (row["id"], row["version"]) for row in standing})
            for schedule in sorted(schedules, key=lambda each: each.trigger):
                await transaction.fetch("put_spec", **_spec(schedule), **_slots(schedule))
            changed: list[str] = []
            for schedule, queue_id, task_id, line_id in numbered:
                written = await transaction.fetch(
                    "put_schedule",
                    **_spec(schedule),
                    **_policies(schedule),
                    queue_id=queue_id,
                    task_id=task_id,
                    line_id=line_id,
                    keep_line=schedule.gates is None,
                    by_hand=author is not None,
                    only_new=schedule.name in fresh,
                    at=at,
                )
                if not written and schedule.name in fresh:  # made by another while this one waited
                    refuse_outdated({schedule.name: None}, {schedule.name: (0, 0)})
                changed += [row["name"] for row in written]
            await self._add_versions(transaction, changed, Change.CHANGED, author or CODE, note, at)
        return changed

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        async with self._database.transaction("pause_schedules") as transaction:
            await transaction.fetch("lock_schedules", names=list(names))
            found = await transaction.fetch(
                "pause_schedules", names=list(names), author=author, note=note, at=at
            )
            return await self._changed(transaction, found, Change.PAUSED, author, note, at)

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        async with self._database.transaction("resume_schedules") as transaction:
            await transaction.fetch("lock_schedules", names=list(names))
            found = await transaction.fetch("resume_schedules", names=list(names), at=at)
            return await self._changed(transaction, found, Change.RESUMED, author, None, at)

    async def hand_back_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        async with self._database.transaction("hand_back_schedules") as transaction:
            await transaction.fetch("lock_schedules", names=list(names))
            found = await transaction.fetch("hand_back_schedules", names=list(names))
            return await self._changed(transaction, found, Change.HANDED_BACK, author, note, at)

    async def skip_slots(self, name: str, *, count: int, author: str, at: Stamp) -> bool:
        async with self._database.transaction("skip_slots") as transaction:
            found = await transaction.fetch("skip_slots", name=name, count=count)
            return bool(await self._changed(transaction, found, Change.SKIPPING, author, None, at))

    async def trigger_schedule(self, name: str, *, at: Stamp) -> int | None:
        found = await self._database.fetch("trigger_schedule", name=name, at=at)
        if not found:
            return None
        self._notifier.poke()
        job_id: int = found[0]["id"]
        return job_id

    async def delete_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        async with self._database.transaction("delete_schedules") as transaction:
            await transaction.fetch("lock_schedules", names=list(names))
            found = await transaction.fetch("schedules", names=list(names))
            doomed = [row["name"] for row in found]
            # The last version is numbered after the one that stands, which it ends.
            await self._add_versions(transaction, doomed, Change.DELETED, author, None, at, number=1)
            await transaction.fetch("delete_schedules", ids=[row["id"] for row in found])
        return doomed

    async def _changed(
        self,
        transaction: Transaction,
        found: list[Record],
        change: Change,
        author: str,
        note: str | None,
        at: Stamp,
    ) -> list[str]:
        names = [row["name"] for row in found]
        await self._add_versions(transaction, names, change, author, note, at)
        return names

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
        found = await transaction.fetch("schedules", names=names) if names else []
        queue_ids, task_ids = {row["queue_id"] for row in found}, {row["task_id"] for row in found}
        await self._names.learn(queue_ids, task_ids, within=transaction)
        for row in found:
            schedule = rows.schedule(row, self._names)
            first = change is Change.CHANGED and schedule.version == 1
            await transaction.fetch(
                "add_version",
                schedule_id=schedule.id,
                version=schedule.version + number,
                name=schedule.name,
                change=Change.CREATED if first else change,
                author=author,
                note=note,
                definition=msgspec.json.encode(schedule).decode(),
                at=at,
            )


def _spec(schedule: NewSchedule) -> dict[str, object]:
    return {"trigger": schedule.trigger, "spec_catch_up": spec_catch_up(schedule)}


def _slots(schedule: NewSchedule) -> dict[str, object]:
    return {"next_at": schedule.next_at, "following_at": schedule.following_at}


def _policies(schedule: NewSchedule) -> dict[str, object]:
    return {
        "name": schedule.name,
        "priority": schedule.priority,
        "max_attempts": schedule.max_attempts,
        "payload": schedule.payload,
        "misfire": schedule.misfire,
        "catch_up": schedule.catch_up,
        "overlap": schedule.overlap,
        "overlap_limit": schedule.overlap_limit,
        "offset_by": schedule.offset,
        "jitter": schedule.jitter,
        "max_fires": schedule.max_fires,
        "expires_after": schedule.expires,
        "expect_start_within": schedule.expect_start_within,
        "expect_finish_by": schedule.expect_finish_by,
    }
