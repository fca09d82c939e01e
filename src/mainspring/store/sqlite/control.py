"""Writing schedules on SQLite: every change is a new version, in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from mainspring.model.schedule import Change, NewSchedule
from mainspring.store.codes import CODE, refuse_outdated, spec_catch_up
from mainspring.store.ports import Expected, Stamp
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.limits import line_ids
from mainspring.store.sqlite.rows import listed, maybe_span, micros, span


class SQLiteControl:
    """The operator's half of ScheduleStore on SQLite."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put_schedules(
        self,
        schedules: Sequence[NewSchedule],
        *,
        author: str | None = None,
        note: str | None = None,
        expected: Expected | None = None,
        at: Stamp,
    ) -> list[str]:
        by_hand = author is not None

        def work(session: Session) -> list[str]:
            now = session.now(at)
            if expected:
                standing = session.rows("schedules", names=listed(expected))
                refuse_outdated(expected, {row["name"]: (row["id"], row["version"]) for row in standing})
            changed = [name for schedule in schedules for name in _put(session, schedule, by_hand, now)]
            _add_versions(session, changed, Change.CHANGED, author or CODE, note, now)
            return changed

        return await self._database.write(work)

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        def work(session: Session) -> list[str]:
            now = session.now(at)
            found = session.rows("pause_schedules", names=listed(names), author=author, note=note, now=now)
            paused = [row["name"] for row in found]
            _add_versions(session, paused, Change.PAUSED, author, note, now)
            return paused

        return await self._database.write(work)

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        def work(session: Session) -> list[str]:
            now = session.now(at)
            found = session.rows("resume_schedules", names=listed(names), now=now)
            resumed = [row["name"] for row in found]
            _add_versions(session, resumed, Change.RESUMED, author, None, now)
            return resumed

        return await self._database.write(work)

    async def hand_back_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        def work(session: Session) -> list[str]:
            handed = [row["name"] for row in session.rows("hand_back_schedules", names=listed(names))]
            _add_versions(session, handed, Change.HANDED_BACK, author, note, session.now(at))
            return handed

        return await self._database.write(work)

    async def skip_slots(self, name: str, *, count: int, author: str, at: Stamp) -> bool:
        def work(session: Session) -> bool:
            skipping = [row["name"] for row in session.rows("skip_slots", name=name, count=count)]
            _add_versions(session, skipping, Change.SKIPPING, author, None, session.now(at))
            return bool(skipping)

        return await self._database.write(work)

    async def trigger_schedule(self, name: str, *, at: Stamp) -> int | None:
        def work(session: Session) -> int | None:
            found = session.rows("trigger_schedule", name=name, now=session.now(at))
            if not found:
                return None
            session.hint()
            job_id: int = found[0]["id"]
            return job_id

        return await self._database.write(work)

    async def delete_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        def work(session: Session) -> list[str]:
            found = session.rows("schedules", names=listed(names))
            doomed = [row["name"] for row in found]
            # The last version is numbered after the one that stands, which it ends.
            _add_versions(session, doomed, Change.DELETED, author, None, session.now(at), number=1)
            session.rows("delete_schedules", ids=listed(row["id"] for row in found))
            return doomed

        return await self._database.write(work)


def _put(session: Session, schedule: NewSchedule, by_hand: bool, now: int) -> list[str]:
    spec = {"trigger": schedule.trigger, "spec_catch_up": span(spec_catch_up(schedule))}
    session.change("add_lanes", queue=schedule.queue, priority=schedule.priority)
    session.change(
        "put_spec", **spec, next_at=micros(schedule.next_at), following_at=micros(schedule.following_at)
    )
    changed = session.rows(
        "put_schedule",
        **spec,
        name=schedule.name,
        task=schedule.task,
        queue=schedule.queue,
        priority=schedule.priority,
        max_attempts=schedule.max_attempts,
        payload=schedule.payload,
        misfire=schedule.misfire,
        catch_up=span(schedule.catch_up),
        overlap=schedule.overlap,
        overlap_limit=schedule.overlap_limit,
        offset_by=span(schedule.offset),
        jitter=span(schedule.jitter),
        max_fires=schedule.max_fires,
        expires_after=maybe_span(schedule.expires),
        expect_start_within=maybe_span(schedule.expect_start_within),
        expect_finish_by=maybe_span(schedule.expect_finish_by),
        by_hand=by_hand,
        line_id=line_ids(session, [schedule.gates])[schedule.gates] if schedule.gates else None,
        keep_line=schedule.gates is None,
        now=now,
    )
    return [row["name"] for row in changed]


def _add_versions(
    session: Session,
    names: list[str],
    change: Change,
    author: str,
    note: str | None,
    now: int,
    *,
    number: int = 0,
) -> None:
    for row in session.rows("schedules", names=listed(names)):
        schedule = rows.schedule(row)
        first = change is Change.CHANGED and schedule.version == 1
        session.change(
            "add_version",
            schedule_id=schedule.id,
            version=schedule.version + number,
            name=schedule.name,
            change=Change.CREATED if first else change,
            author=author,
            note=note,
            definition=msgspec.json.encode(schedule).decode(),
            now=now,
        )
