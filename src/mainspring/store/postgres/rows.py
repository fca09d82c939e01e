"""Rows of PostgreSQL into model values."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

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
from mainspring.store.codes import COALESCE, DISPOSITION, FINAL_STATE, GATED, catch_up_read
from mainspring.store.declaring import OpenFire
from mainspring.store.postgres.names import Names

if TYPE_CHECKING:
    from mainspring.store.postgres.connection import Record

_failure = msgspec.json.Decoder(Failure)
_schedule = msgspec.json.Decoder(Schedule)
_moments = msgspec.json.Decoder(tuple[datetime, ...])
_failures = msgspec.json.Decoder(tuple[Failure, ...])


def written(failure: Failure | None) -> str:
    """A failure as jsonb takes it."""
    return msgspec.json.encode(failure).decode()


def errors(text: str | None) -> tuple[Failure, ...]:
    """The errors kept with a job."""
    return () if text is None else _failures.decode(text)


def failure(text: str | None) -> Failure | None:
    """One of them."""
    return None if text is None else _failure.decode(text)


def to_claim(row: Record, worker_id: int, names: Names, database_id: str) -> Claim:
    """A claimed row; its queue and task must have been learnt."""
    # By position, as both statements name their columns: a claim is the one row made for every job, and to
    # ask for fifteen names takes longer than all the rest.
    (
        job_id,
        fence,
        queue_id,
        task_id,
        _priority,
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
    return Claim(
        job_id=job_id,
        worker_id=worker_id,
        fence=fence,
        task=names.task(task_id),
        queue=names.queue(queue_id),
        payload=payload,
        failures=failures,
        max_attempts=max_attempts,
        run_at=run_at,
        enqueued_at=enqueued_at,
        schedule_id=schedule_id,
        slot_at=slot_at,
        limited=line_id is not None,
        crashes=crashes,
        expires_in=expires_in,
        workflow_id=workflow_id,
        trace=trace,
        waited=waited,
        previous_at=previous_at,
        database_id=database_id,
    )


def live_job(row: Record, names: Names) -> Job:
    """A row of `jobs`."""
    return Job(
        id=row["id"],
        task=names.task(row["task_id"]),
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        state=JobState(row["state"]),
        run_at=row["due_at"] or row["run_at"],
        enqueued_at=row["enqueued_at"],
        payload=row["payload"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        worker_id=row["worker_id"] or None,
        schedule_id=row["schedule_id"],
        slot_at=row["slot_at"],
        workflow_id=row["workflow_id"],
        trace=row["trace"],
        waits_for_limit=row["run_at"] == GATED,
        expires_at=row["expires_at"],
        errors=errors(row["errors"]),
    )


def ended_job(row: Record, names: Names) -> Job:
    """A job as the run that ended it tells."""
    return Job(
        id=row["job_id"],
        task=names.task(row["task_id"]),
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        state=FINAL_STATE[row["verdict"]],
        run_at=row["run_at"],
        enqueued_at=row["enqueued_at"],
        payload=row["payload"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        worker_id=row["worker_id"] or None,
        schedule_id=row["schedule_id"],
        slot_at=row["slot_at"],
        finished_at=row["finished_at"],
        result=row["result"],
    )


def dead_job(row: Record, names: Names) -> DeadJob:
    """A row of `dead_jobs`."""
    return DeadJob(
        id=row["id"],
        task=names.task(row["task_id"]),
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        payload=row["payload"],
        run_at=row["run_at"],
        enqueued_at=row["enqueued_at"],
        died_at=row["died_at"],
        max_attempts=row["max_attempts"],
        failures=row["failures"],
        crashes=row["crashes"],
        fence=row["fence"],
        schedule_id=row["schedule_id"],
        slot_at=row["slot_at"],
        reason=row["reason"],
        errors=errors(row["errors"]),
        expires_at=row["expires_at"],
        workflow_id=row["workflow_id"],
        trace=row["trace"],
    )


def standing(row: Record) -> Standing:
    """A row of `jobs`, but for its arguments."""
    return Standing(
        id=row["id"],
        state=JobState(row["state"]),
        run_at=row["run_at"],
        enqueued_at=row["enqueued_at"],
        failures=row["failures"],
        max_attempts=row["max_attempts"],
        worker_id=row["worker_id"] or None,
        claimed_at=row["claimed_at"] if row["worker_id"] else None,
    )


def dead_group(row: Record, names: Names) -> DeadGroup:
    """Dead letters that are alike."""
    return DeadGroup(
        task=names.task(row["task_id"]),
        error=row["error"],
        line=row["line"],
        count=row["letters"],
        newest_at=row["newest_at"],
        newest_id=row["newest_id"],
    )


def spec(row: Record) -> Spec:
    """A row of `specs` that has a slot to come."""
    return Spec(
        id=row["id"],
        trigger=row["trigger"],
        next_at=row["next_at"],
        following_at=row["following_at"],
        planned=row["planned"],
        one_by_one=row["catch_up"] != COALESCE,
        catch_up=catch_up_read(row["catch_up"]),
        tripped=row["tripped"],
        skips=row["skips"],
        last_at=row["last_at"],
    )


def slot_facts(row: Record) -> SlotFacts:
    """What is on record about one slot."""
    definition = row["definition"]
    return SlotFacts(
        trigger=None if definition is None else _schedule.decode(definition).trigger,
        since=row["since"],
        backfilled=bool(row["backfilled"]),
    )


def combined(opening: Opening) -> str | None:
    """The missed slots that an opened one names, as JSON."""
    return msgspec.json.encode(opening.combined).decode() if opening.combined else None


def open_fire(row: Record) -> OpenFire:
    """A row of `fires`."""
    return OpenFire(
        opening=Opening(
            spec_id=row["id"],
            expected=row["slot_at"],
            slot_at=row["slot_at"],
            since=row["since"],
            combined=() if row["combined"] is None else _moments.decode(row["combined"]),
            next_at=None,
            skip=None if row["skip"] is None else Skipped(row["skip"]),
            note=row["note"],
        ),
        last_id=row["last_id"],
        until_id=row["until_id"],
    )


def schedule(row: Record, names: Names) -> Schedule:
    """A row of `schedules` with its spec."""
    return Schedule(
        id=row["id"],
        name=row["name"],
        task=names.task(row["task_id"]),
        trigger=row["trigger"],
        payload=row["payload"],
        queue=names.queue(row["queue_id"]),
        priority=row["priority"],
        max_attempts=row["max_attempts"],
        misfire=Misfire(row["misfire"]),
        catch_up=catch_up_read(row["catch_up"]),
        overlap=Overlap(row["overlap"]),
        overlap_limit=row["overlap_limit"],
        offset=row["offset_by"],
        jitter=row["jitter"],
        max_fires=row["max_fires"],
        fires_left=row["fires_left"],
        skips=row["skips"],
        version=row["version"],
        active_from=row["active_from"],
        edited=row["edited"],
        paused_at=row["paused_at"],
        paused_by=row["paused_by"],
        pause_note=row["pause_note"],
        next_at=row["next_at"],
        line_id=row["line_id"],
        expires=row["expires_after"],
        expect_start_within=row["expect_start_within"],
        expect_finish_by=row["expect_finish_by"],
    )


def slot(row: Record) -> Slot:
    """A row of the ledger."""
    return Slot(
        schedule=row["schedule"],
        slot_at=row["slot_at"],
        disposition=DISPOSITION[row["disposition"]],
        reason=None if row["reason"] is None else Skipped(row["reason"]),
        since=row["since"],
        job_id=row["job_id"],
        decided_at=row["decided_at"],
        blocker=row["blocker"],
        note=row["note"],
    )


def version(row: Record) -> ScheduleVersion:
    """A row of `schedule_versions`."""
    return ScheduleVersion(
        schedule=_schedule.decode(row["definition"]),
        version=row["version"],
        change=Change(row["change"]),
        changed_at=row["changed_at"],
        author=row["author"],
        note=row["note"],
    )
