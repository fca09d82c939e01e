"""Writing schedules on SQLite: every change is a new version, in the same transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypeVar

import msgspec

from mainspring.model.calendar import StoredCalendar
from mainspring.model.limit import Gate
from mainspring.model.schedule import Change, NewSchedule, Schedule, Skipped
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
from mainspring.store.sqlite import rows
from mainspring.store.sqlite.connection import Session
from mainspring.store.sqlite.database import Database
from mainspring.store.sqlite.limits import known_lines, line_ids
from mainspring.store.sqlite.rows import listed, maybe_listed, maybe_span, micros, moment, span
from mainspring.store.sqlite.schedules import write_slot

T = TypeVar("T")


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
        changed: list[str] = []
        for batch in batches(schedules, expected):
            look = partial(_is_said, batch=batch, by_hand=author is not None)
            # Most are as they are said to be: that is seen beside whoever writes.
            if expected or not await self._database.read(look):
                work = partial(
                    _put_all, batch=batch, author=author, note=note, expected=expected or {}, at=at
                )
                changed += await self._whole(work)
        return changed

    async def pause_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        def work(session: Session) -> list[str] | None:
            now = session.now(at)
            found = [row for row in _rows(session, names) if row["paused_at"] is None]
            if not _decided(session, found, Skipped.PAUSED, now):
                return None
            paused = [row["name"] for row in found]
            session.rows("pause_schedules", names=listed(paused), author=author, note=note, now=now)
            _add_versions(session, paused, Change.PAUSED, author, note, now)
            return paused

        return await self._whole(work)

    async def resume_schedules(self, names: Sequence[str], *, author: str, at: Stamp) -> list[str]:
        def work(session: Session) -> list[str] | None:
            now = session.now(at)
            found = [row for row in _rows(session, names) if row["paused_at"] is not None]
            if not _decided(session, found, None, now):
                return None
            resumed = [row["name"] for row in found]
            session.rows("resume_schedules", names=listed(resumed), now=now)
            _add_versions(session, resumed, Change.RESUMED, author, None, now)
            return resumed

        return await self._whole(work)

    async def hand_back_schedules(
        self, names: Sequence[str], *, author: str, note: str | None, at: Stamp
    ) -> list[str]:
        def work(session: Session) -> list[str]:
            handed = [row["name"] for row in session.rows("hand_back_schedules", names=listed(names))]
            _add_versions(session, handed, Change.HANDED_BACK, author, note, session.now(at))
            return handed

        return await self._database.write(work)

    async def skip_slots(self, name: str, *, count: int, author: str, at: Stamp) -> bool:
        def work(session: Session) -> bool | None:
            now = session.now(at)
            if not _decided(session, _rows(session, [name]), None, now):
                return None
            skipping = [row["name"] for row in session.rows("skip_slots", name=name, count=count)]
            _add_versions(session, skipping, Change.SKIPPING, author, None, now)
            return bool(skipping)

        return await self._whole(work)

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
        def work(session: Session) -> list[str] | None:
            now = session.now(at)
            found = _rows(session, names)
            if not _decided(session, found, Skipped.DELETED, now):
                return None
            doomed = [row["name"] for row in found]
            # The last version is numbered after the one that stands, which it ends.
            _add_versions(session, doomed, Change.DELETED, author, None, now, number=1)
            session.rows("delete_schedules", ids=listed(row["id"] for row in found))
            return doomed

        return await self._whole(work)

    async def _whole(self, work: Callable[[Session], T | None]) -> T:
        """Until it has been done: where more is due before a change than one transaction should decide, it
        takes several, and whoever reads in between finds the schedules as they were."""
        while (done := await self._database.write(work)) is None:
            pass
        return done


def _rows(session: Session, names: Sequence[str]) -> list[sqlite3.Row]:
    found = session.rows("standing_schedules", names=listed(names))
    return sorted(found, key=lambda row: str(row["name"]))


def _decided(session: Session, found: Sequence[sqlite3.Row], skip: Skipped | None, now: int) -> bool:
    """Decide what was due of these schedules as they stand; whether that was all. Of one that is paused its
    pause is why nothing is run."""
    due = session.rows("overdue_specs", ids=listed({row["spec_id"] for row in found}), now=now)
    if not due:
        return True
    specs = {row["id"]: rows.spec(row) for row in due if row["due"]}
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
        [rows.open_fire(row) for row in due if row["slot_at"] is not None],
        [StoredCalendar(**dict(row)) for row in session.rows("calendars")]
        if names_calendar(specs.values())
        else (),
        moment(now),
    )
    for each in chain.from_iterable(left.rounds):
        opened = {
            "spec_id": each.schedule.spec_id,
            "slot_at": micros(each.opening.slot_at),
            "since": micros(each.opening.since),
            "combined": maybe_listed(map(micros, each.opening.combined)),
            "skip": each.skip,
            "note": each.opening.note,
        }
        write_slot(session, opened, each.schedule.id - 1, each.schedule.id, NO_BREAKER, now)
    for key, begin in left.active_from(moment(now)).items():
        session.change("move_active", id=key, moment=micros(begin))
    return left.whole


def _is_said(session: Session, batch: list[NewSchedule], by_hand: bool) -> bool:
    """Whether every one is as it is said to be."""
    lines = known_lines(session, (each.gates for each in batch if each.gates))
    return not _differing(batch, lines, _standing(session, batch), by_hand)


def _put_all(
    session: Session,
    batch: list[NewSchedule],
    author: str | None,
    note: str | None,
    expected: Expected,
    at: Stamp,
) -> list[str] | None:
    now = session.now(at)
    by_hand = author is not None
    if expected:
        found = session.rows("standing_schedules", names=listed(expected))
        refuse_outdated(expected, {row["name"]: (row["id"], row["version"]) for row in found})
    lines = line_ids(session, (each.gates for each in batch if each.gates))
    standing = _standing(session, batch)
    differing = _differing(batch, lines, standing, by_hand)
    known = [each.new.name for each in differing if each.new.name in standing]
    if not _decided(session, _rows(session, known), None, now):
        return None
    for each in differing:
        _put(session, each, by_hand, now, is_there=each.new.name in standing)
    written = [each.new.name for each in differing]
    _add_versions(session, written, Change.CHANGED, author or CODE, note, now)
    return written


def _standing(session: Session, batch: list[NewSchedule]) -> dict[str, Schedule]:
    found = session.rows("standing_schedules", names=listed(each.name for each in batch))
    return {row["name"]: rows.schedule(row) for row in found}


def _differing(
    batch: list[NewSchedule],
    lines: Mapping[tuple[Gate, ...], int],
    standing: dict[str, Schedule],
    by_hand: bool,
) -> list[Said]:
    said = [Said(new=each, line_id=lines[each.gates] if each.gates else None) for each in batch]
    return [each for each in said if each.differs(standing.get(each.new.name), by_hand=by_hand)]


def _put(session: Session, said: Said, by_hand: bool, now: int, *, is_there: bool) -> None:
    schedule = said.new
    spec = {"trigger": schedule.trigger, "spec_catch_up": span(spec_catch_up(schedule))}
    session.change("add_lanes", queue=schedule.queue, priority=schedule.priority)
    session.change(
        "put_specs", **spec, next_at=micros(schedule.next_at), following_at=micros(schedule.following_at)
    )
    how = {"keep_line": schedule.gates is None} if is_there else {}
    session.change(
        "change_schedules" if is_there else "add_schedules",
        **spec,
        **how,
        name=schedule.name,
        task=schedule.task,
        queue=schedule.queue,
        priority=schedule.priority,
        max_attempts=schedule.max_attempts,
        payload=schedule.payload,
        misfire=schedule.misfire,
        catch_up=span(catch_up_code(schedule.catch_up)),
        overlap=schedule.overlap,
        overlap_limit=schedule.overlap_limit,
        offset_by=span(schedule.offset),
        jitter=span(schedule.jitter),
        max_fires=schedule.max_fires,
        expires_after=maybe_span(schedule.expires),
        expect_start_within=maybe_span(schedule.expect_start_within),
        expect_finish_by=maybe_span(schedule.expect_finish_by),
        by_hand=by_hand,
        line_id=said.line_id,
        now=now,
    )


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
    schedules = [rows.schedule(row) for row in session.rows("standing_schedules", names=listed(names))]
    session.each(
        "add_versions",
        [
            {
                "schedule_id": each.id,
                "version": each.version + number,
                "name": each.name,
                "change": named_change(change, each),
                "author": author,
                "note": note,
                "definition": msgspec.json.encode(each).decode(),
                "now": now,
            }
            for each in schedules
        ],
    )
