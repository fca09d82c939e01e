"""Times, JSON and rows of SQLite, into model values and back."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import overload

import msgspec

from mainspring.model.backfill import Backfill, Reprocess
from mainspring.model.failure import Failure
from mainspring.model.history import DeadGroup, DeadJob, Standing
from mainspring.model.job import Claim, Job, JobState
from mainspring.model.schedule import (
    Change,
    Misfire,
    Opening,
    Overlap,
    Schedule,
    ScheduleVersion,
    Skipped,
    Slot,
    SlotFacts,
    Spec,
)
from mainspring.store.backfilling import state
from mainspring.store.codes import COALESCE, DISPOSITION, FINAL_STATE, GATED, catch_up_read
from mainspring.store.declaring import OpenFire

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_failure = msgspec.json.Decoder(Failure)
_schedule = msgspec.json.Decoder(Schedule)
_ints = msgspec.json.Decoder(tuple[int, ...])
_failures = msgspec.json.Decoder(tuple[Failure, ...])


@overload
def micros(value: datetime) -> int: ...
@overload
def micros(value: datetime | None) -> int | None: ...
def micros(value: datetime | None) -> int | None:
    """A moment as the database keeps it."""
    return None if value is None else (value - EPOCH) // MICROSECOND


def bound(value: object) -> object:
    """A parameter as the database keeps it."""
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, timedelta):
        return span(value)
    if isinstance(value, list | tuple | set | frozenset):
        return listed(value)
    return value


def span(value: timedelta) -> int:
    """A length of time as the database keeps it."""
    return value // MICROSECOND


def maybe_span(value: timedelta | None) -> int | None:
    """A length of time that may be missing, as the database keeps it."""
    return None if value is None else span(value)


def maybe_length(value: int | None) -> timedelta | None:
    """A length of time that may be missing, out of the database."""
    return None if value is None else length(value)


def length(value: int) -> timedelta:
    """A length of time out of the database."""
    return timedelta(microseconds=value)


def moment(value: int) -> datetime:
    """A moment out of the database."""
    return EPOCH + timedelta(microseconds=value)


def maybe_moment(value: int | None) -> datetime | None:
    """A moment that may be missing."""
    return None if value is None else moment(value)


def listed(values: Iterable[object]) -> str:
    """A list for json_each()."""
    return msgspec.json.encode(list(values)).decode()


def maybe_listed(values: Iterable[object]) -> str | None:
    """The same, and NULL for an empty one."""
    found = listed(values)
    return None if found == "[]" else found


def by_id(values: Mapping[int, object]) -> str:
    """An object for json_each(), whose keys are ids."""
    return msgspec.json.encode(values).decode()


def written(failure: Failure) -> str:
    """A failure as a run keeps it."""
    return msgspec.json.encode(failure).decode()


def noted(failure: Failure, now: int) -> str:
    """The same with its moment, for a statement that adds the attempt."""
    return written(msgspec.structs.replace(failure, at=moment(now)))


def errors(text: str | None) -> tuple[Failure, ...]:
    """The errors kept with a job."""
    return () if text is None else _failures.decode(text)


def to_claim(row: sqlite3.Row, worker_id: int, database_id: str) -> Claim:
    """A claimed row."""
    (
        job_id,
        fence,
        queue,
        task,
        payload,
        failures,
        max_attempts,
        run_at,
        enqueued_at,
        schedule_id,
        slot_at,
        line_id,
        crashes,
        expires_in,
        workflow_id,
        trace,
        waited,
        previous_at,
    ) = row
    due = moment(run_at)
    return Claim(
        job_id=job_id,
        worker_id=worker_id,
        fence=fence,
        task=task,
        queue=queue,
        payload=payload,
        failures=failures,
        max_attempts=max_attempts,
        run_at=due,
        enqueued_at=due if enqueued_at == run_at else moment(enqueued_at),  # the same for most
        schedule_id=schedule_id,
        slot_at=maybe_moment(slot_at),
        limited=line_id is not None,
        crashes=crashes,
        expires_in=None if expires_in is None else length(expires_in),
        workflow_id=workflow_id,
        trace=trace,
        waited=length(waited),
        previous_at=None if previous_at is None else moment(previous_at),
        database_id=database_id,
    )


def live_job(row: sqlite3.Row) -> Job:
    """A row of `jobs`."""
    return Job(
        id=row["id"],
        task=row["task"],
        queue=row["queue"],
        priority=row["priority"],
        state=JobState(row["state"]),
        run_at=moment(row["due_at"] or row["run_at"]),
        enqueued_at=moment(row["enqueued_at"]),
        payload=row["payload"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        worker_id=row["worker_id"] or None,
        schedule_id=row["schedule_id"],
        slot_at=maybe_moment(row["slot_at"]),
        workflow_id=row["workflow_id"],
        trace=row["trace"],
        waits_for_limit=moment(row["run_at"]) == GATED,
        expires_at=maybe_moment(row["expires_at"]),
        errors=errors(row["errors"]),
    )


def ended_job(row: sqlite3.Row) -> Job:
    """A job as the run that ended it tells."""
    return Job(
        id=row["job_id"],
        task=row["task"],
        queue=row["queue"],
        priority=row["priority"],
        state=FINAL_STATE[row["verdict"]],
        run_at=moment(row["run_at"]),
        enqueued_at=moment(row["enqueued_at"]),
        payload=row["payload"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        worker_id=row["worker_id"] or None,
        schedule_id=row["schedule_id"],
        slot_at=maybe_moment(row["slot_at"]),
        finished_at=moment(row["finished_at"]),
        result=row["result"],
    )


def dead_job(row: sqlite3.Row) -> DeadJob:
    """A row of `dead_jobs`."""
    return DeadJob(
        id=row["id"],
        task=row["task"],
        queue=row["queue"],
        priority=row["priority"],
        payload=row["payload"],
        run_at=moment(row["run_at"]),
        enqueued_at=moment(row["enqueued_at"]),
        died_at=moment(row["died_at"]),
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        schedule_id=row["schedule_id"],
        slot_at=maybe_moment(row["slot_at"]),
        reason=row["reason"],
        errors=errors(row["errors"]),
        expires_at=maybe_moment(row["expires_at"]),
        workflow_id=row["workflow_id"],
        trace=row["trace"],
    )


def standing(row: sqlite3.Row) -> Standing:
    """A row of `jobs`, but for its arguments."""
    return Standing(
        id=row["id"],
        state=JobState(row["state"]),
        run_at=moment(row["run_at"]),
        enqueued_at=moment(row["enqueued_at"]),
        failures=row["failures"],
        max_attempts=row["max_attempts"],
        worker_id=row["worker_id"] or None,
        claimed_at=moment(row["claimed_at"]) if row["worker_id"] else None,
    )


def dead_group(row: sqlite3.Row) -> DeadGroup:
    """Dead letters that are alike."""
    return DeadGroup(
        task=row["task"],
        error=row["error"],
        line=row["line"],
        count=row["letters"],
        newest_at=moment(row["newest_at"]),
        newest_id=row["newest_id"],
    )


def spec(row: sqlite3.Row) -> Spec:
    """A row of `specs` that has a slot to come."""
    return Spec(
        id=row["id"],
        trigger=row["trigger"],
        next_at=moment(row["next_at"]),
        following_at=maybe_moment(row["following_at"]),
        planned=bool(row["planned"]),
        one_by_one=length(row["catch_up"]) != COALESCE,
        catch_up=catch_up_read(length(row["catch_up"])),
        tripped=bool(row["tripped"]),
        skips=row["skips"],
        last_at=maybe_moment(row["last_at"]),
    )


def slot_facts(row: sqlite3.Row) -> SlotFacts:
    """What is on record about one slot."""
    definition = row["definition"]
    return SlotFacts(
        trigger=None if definition is None else _schedule.decode(definition).trigger,
        since=maybe_moment(row["since"]),
        backfilled=bool(row["backfilled"]),
    )


def open_fire(row: sqlite3.Row) -> OpenFire:
    """A row of `fires`."""
    slot_at = moment(row["slot_at"])
    return OpenFire(
        opening=Opening(
            spec_id=row["id"],
            expected=slot_at,
            slot_at=slot_at,
            since=maybe_moment(row["since"]),
            combined=tuple(map(moment, _ints.decode(row["combined"] or "[]"))),
            next_at=None,
            skip=None if row["skip"] is None else Skipped(row["skip"]),
            note=row["note"],
        ),
        last_id=row["last_id"],
        until_id=row["until_id"],
    )


def schedule(row: sqlite3.Row) -> Schedule:
    """A row of `schedules` with its spec."""
    return Schedule(
        id=row["id"],
        name=row["name"],
        task=row["task"],
        trigger=row["trigger"],
        payload=row["payload"],
        queue=row["queue"],
        priority=row["priority"],
        max_attempts=row["max_attempts"],
        misfire=Misfire(row["misfire"]),
        catch_up=catch_up_read(length(row["catch_up"])),
        overlap=Overlap(row["overlap"]),
        overlap_limit=row["overlap_limit"],
        offset=length(row["offset_by"]),
        jitter=length(row["jitter"]),
        max_fires=row["max_fires"],
        fires_left=row["fires_left"],
        skips=row["skips"],
        version=row["version"],
        active_from=moment(row["active_from"]),
        edited=bool(row["edited"]),
        paused_at=maybe_moment(row["paused_at"]),
        paused_by=row["paused_by"],
        pause_note=row["pause_note"],
        next_at=maybe_moment(row["next_at"]),
        line_id=row["line_id"],
        expires=maybe_length(row["expires_after"]),
        expect_start_within=maybe_length(row["expect_start_within"]),
        expect_finish_by=maybe_length(row["expect_finish_by"]),
    )


def slot(row: sqlite3.Row) -> Slot:
    """A row of the ledger."""
    return Slot(
        schedule=row["schedule"],
        slot_at=moment(row["slot_at"]),
        disposition=DISPOSITION[row["disposition"]],
        reason=None if row["reason"] is None else Skipped(row["reason"]),
        since=maybe_moment(row["since"]),
        job_id=row["job_id"],
        decided_at=moment(row["decided_at"]),
        blocker=row["blocker"],
        note=row["note"],
    )


def version(row: sqlite3.Row) -> ScheduleVersion:
    """A row of `schedule_versions`."""
    return ScheduleVersion(
        schedule=_schedule.decode(row["definition"]),
        version=row["version"],
        change=Change(row["change"]),
        changed_at=moment(row["changed_at"]),
        author=row["author"],
        note=row["note"],
    )


def backfill(row: sqlite3.Row) -> Backfill:
    """A row of `backfills`, with what its slots come to."""
    return Backfill(
        id=row["id"],
        schedule=row["schedule"],
        start=moment(row["start_at"]),
        end=moment(row["end_at"]),
        author=row["author"],
        max_active=row["max_active"],
        reverse=bool(row["reverse"]),
        reprocess=Reprocess(row["reprocess"]),
        state=state(row["ended_at"] is not None, row["cancelled_by"]),
        created_at=moment(row["created_at"]),
        ended_at=maybe_moment(row["ended_at"]),
        cancelled_by=row["cancelled_by"],
        slots=row["slots"],
        made=row["made"],
        left=row["left_alone"],
        live=row["live"],
    )
