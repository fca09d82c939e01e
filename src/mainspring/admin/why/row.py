"""What a row of the ledger tells about a slot, in a sentence."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from mainspring.admin.views import iso
from mainspring.admin.why.answer import Answer, Because, answer
from mainspring.admin.words import length, moment
from mainspring.model.job import Job, JobState
from mainspring.model.schedule import Disposition, Schedule, ScheduleVersion, Skipped, Slot

_JOB_NOW = {
    JobState.DELAYED: "is waiting for its time",
    JobState.READY: "is waiting for a worker",
    JobState.RUNNING: "is running",
    JobState.SUCCEEDED: "succeeded",
    JobState.DEAD: "is dead",
    JobState.CANCELLED: "was cancelled",
    JobState.DISCARDED: "was discarded by its handler",
}


def decided(row: Slot, at: datetime, job: Job | None, version: ScheduleVersion | None) -> Answer:
    """What became of the slot at `at`, which this row decides; `version` was in force when it did."""
    schedule = None if version is None else version.schedule
    if row.disposition is Disposition.BACKFILLED and row.slot_at == at:
        return _backfilled(row, job)
    if row.reason is not None:
        return _skipped(row, row.reason, at, schedule)
    fired = f"fired as job {row.job_id}, which {_job_now(job)}"
    if row.slot_at == at:
        said = f"The slot of {moment(at)} {fired}."
    else:
        said = (
            f"The slot of {moment(at)} was coalesced into the slot of {moment(row.slot_at)}, which {fired}."
        )
    return answer(
        Because.FIRED if row.slot_at == at else Because.COALESCED,
        said + _late(row) + _noted(row),
        **_facts(row, at),
        job_id=row.job_id,
        job_state=None if job is None else job.state.value,
    )


def _backfilled(row: Slot, job: Job | None) -> Answer:
    at_the_time = "" if row.reason is None else f" At the time it was skipped: {row.reason}."
    return answer(
        Because.BACKFILLED,
        f"The slot of {moment(row.slot_at)} was run at {moment(row.decided_at)} ({row.note}) as job "
        f"{row.job_id}, which {_job_now(job)}.{at_the_time}",
        **_facts(row, row.slot_at),
        job_id=row.job_id,
        job_state=None if job is None else job.state.value,
        reason=None if row.reason is None else row.reason.value,
    )


def _skipped(row: Slot, reason: Skipped, at: datetime, schedule: Schedule | None) -> Answer:
    together = ""
    if row.since is not None:
        together = f" with those from {moment(row.since)} to {moment(row.slot_at)}"
    return answer(
        Because.SKIPPED,
        f"The slot of {moment(at)} was skipped{together}: {_reason(row, reason, schedule)}.{_noted(row)}",
        **_facts(row, at),
        reason=reason.value,
        blocker=row.blocker,
        **_pause(row, schedule),
    )


def _reason(row: Slot, reason: Skipped, schedule: Schedule | None) -> str:
    match reason:
        case Skipped.MISFIRE:
            return f"misfire, nobody could fire it until {moment(row.decided_at)}{_asked(schedule)}"
        case Skipped.TOO_LATE:
            return f"too_late, nobody could fire it until {moment(row.decided_at)}{_window(schedule)}"
        case Skipped.OVERLAP:
            return f"overlap, job {row.blocker} was still live"
        case Skipped.PAUSED:
            return _paused(schedule)
        case Skipped.CALENDAR:
            return "calendar, it leaves this day out"
        case Skipped.BREAKER:
            return (
                f"breaker, too many jobs of its schedule were live at {moment(row.decided_at)}; "
                "`mainspring schedules go-on` runs what was left out"
            )
        case Skipped.REQUESTED:
            return "requested, somebody asked for it to be skipped"
        case Skipped.EXHAUSTED:
            limit = "" if schedule is None or schedule.max_fires is None else f"{schedule.max_fires} "
            return f"exhausted, all its {limit}fires were used up"
        case Skipped.DELETED:
            return "deleted, it was due and not yet fired when its schedule was deleted"
        case _:
            assert_never(reason)


def _asked(schedule: Schedule | None) -> str:
    return "" if schedule is None else f" (misfire {schedule.misfire})"


def _window(schedule: Schedule | None) -> str:
    if schedule is None or schedule.catch_up is None:
        return ""
    return f", and it was older than the schedule's catch_up of {length(schedule.catch_up)} by then"


def _paused(schedule: Schedule | None) -> str:
    if schedule is None or schedule.paused_at is None:
        return "it was paused"
    note = f": {schedule.pause_note}" if schedule.pause_note else ""
    return f"it was paused by {schedule.paused_by} at {moment(schedule.paused_at)}{note}"


def _pause(row: Slot, schedule: Schedule | None) -> dict[str, object]:
    if row.reason is not Skipped.PAUSED or schedule is None:
        return {}
    return {
        "paused_at": iso(schedule.paused_at),
        "paused_by": schedule.paused_by,
        "pause_note": schedule.pause_note,
    }


def _job_now(job: Job | None) -> str:
    if job is None:
        return "is no longer on record"
    ended = f" at {moment(job.finished_at)}" if job.finished_at is not None else ""
    return _JOB_NOW[job.state] + ended


def _late(row: Slot) -> str:
    late = row.decided_at - row.slot_at
    return f" It was fired {length(late)} late." if late.total_seconds() >= 1 else ""


def _noted(row: Slot) -> str:
    return f" Note: {row.note}." if row.note else ""


def _facts(row: Slot, at: datetime) -> dict[str, object]:
    return {
        "at": iso(at),
        "slot_at": iso(row.slot_at),
        "since": iso(row.since),
        "decided_at": iso(row.decided_at),
        "note": row.note,
    }
