"""The JSON shapes: one function per noun, plain dicts, moments as ISO 8601 in UTC."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from mainspring.admin.health.finding import Check
from mainspring.admin.why.answer import Answer
from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument
from mainspring.model.dead_letter import DeadGroup, DeadJob
from mainspring.model.job import Failure, Job, tried_since
from mainspring.model.process import MemberInfo
from mainspring.model.queue import QueueDepth
from mainspring.model.run import RESULT_GONE, Progress, Run
from mainspring.model.schedule import Period, Schedule, Slot
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.payload import decode

View = dict[str, object]


def handle_view(handle: JobHandle[Any]) -> View:
    """What an enqueue answers."""
    return {"id": handle.id, "task": handle.task, "queue": handle.queue, "created": handle.created}


def job_view(job: Job) -> View:
    """A job wherever it stands."""
    return {
        "id": job.id,
        "task": job.task,
        "queue": job.queue,
        "priority": job.priority,
        "state": job.state.value,
        **call_view(job.payload),
        "run_at": iso(job.run_at),
        "enqueued_at": iso(job.enqueued_at),
        "finished_at": iso(job.finished_at),
        "expires_at": iso(job.expires_at),
        "max_attempts": job.max_attempts,
        "failures": job.failures,
        "crashes": job.crashes,
        "fence": job.fence,
        "worker_id": member_id(job.worker_id),
        "schedule_id": job.schedule_id,
        "slot_at": iso(job.slot_at),
        "result": _result(job.result),
        **_gone(job.result),
        "errors": [failure_view(each) for each in job.errors],
    }


def period_view(period: Period | None) -> View | None:
    """What a slot's job stands for."""
    if period is None:
        return None
    return {
        "start": iso(period.start),
        "end": iso(period.end),
        "previous": iso(period.previous),
        "since": iso(period.since),
        "missed": period.missed,
        "at_least": period.at_least,
        "backfill": period.backfill,
    }


def run_view(run: Run) -> View:
    """One attempt."""
    took = None if run.started_at is None else (run.finished_at - run.started_at).total_seconds()
    return {
        "job_id": run.job_id,
        "task": run.task,
        "queue": run.queue,
        "attempt": run.attempt,
        "verdict": run.verdict.value,
        "worker_id": member_id(run.worker_id),
        "fence": run.fence,
        "started_at": iso(run.started_at),
        "finished_at": iso(run.finished_at),
        "seconds": took,
        "failure": None if run.failure is None else failure_view(run.failure),
        "result": _result(run.result),
        **_gone(run.result),
        **({} if run.payload is None else {"before": call_view(run.payload)}),
    }


def progress_view(progress: Progress | None) -> View | None:
    """How far a running job said it was."""
    if progress is None:
        return None
    return {"fraction": progress.fraction, "note": progress.note or None, "at": iso(progress.at)}


def failure_view(failure: Failure) -> View:
    """What a handler raised."""
    return {
        "type": failure.type,
        "message": failure.message,
        "traceback": failure.traceback,
        "attempt": failure.attempt,
        "at": iso(failure.at),
    }


def dead_view(dead: DeadJob) -> View:
    """A dead letter: the job, and why it died."""
    belongs = {} if dead.workflow_id is None else {"workflow_id": dead.workflow_id}
    since = tried_since(dead.errors)
    return {
        **job_view(dead.as_job()),
        "died_at": iso(dead.died_at),
        "reason": dead.reason,
        "first_failed_at": iso(since),
        "tried_for_seconds": None if since is None else (dead.died_at - since).total_seconds(),
        **belongs,
    }


def dead_group_view(group: DeadGroup) -> View:
    """Dead letters that are alike."""
    return {
        "task": group.task,
        "error": group.error,
        "line": group.line,
        "count": group.count,
        "newest_at": iso(group.newest_at),
        "newest_id": group.newest_id,
    }


def schedule_view(schedule: Schedule) -> View:
    """A schedule as it is on record."""
    return {
        "id": schedule.id,
        "name": schedule.name,
        "task": schedule.task,
        "trigger": trigger_view(schedule.trigger),
        **call_view(schedule.payload),
        "queue": schedule.queue,
        "priority": schedule.priority,
        "max_attempts": schedule.max_attempts,
        "misfire": schedule.misfire.value,
        "catch_up": None if schedule.catch_up is None else format_duration(schedule.catch_up),
        "overlap": schedule.overlap.value,
        "overlap_limit": schedule.overlap_limit,
        "offset": format_duration(schedule.offset),
        "jitter": format_duration(schedule.jitter),
        "max_fires": schedule.max_fires,
        "expires": None if schedule.expires is None else format_duration(schedule.expires),
        "expect_start_within": _length(schedule.expect_start_within),
        "expect_finish_by": _length(schedule.expect_finish_by),
        "fires_left": schedule.fires_left,
        "skips": schedule.skips,
        "version": schedule.version,
        "active_from": iso(schedule.active_from),
        "edited": schedule.edited,
        "paused_at": iso(schedule.paused_at),
        "paused_by": schedule.paused_by,
        "pause_note": schedule.pause_note,
        "next_at": iso(schedule.next_at),
    }


def _length(length: timedelta | None) -> str | None:
    return None if length is None else format_duration(length)


def answer_view(answer: Answer) -> View:
    """Why something is as it is."""
    return {"because": answer.because.value, "sentence": answer.sentence, **answer.facts}


def check_view(check: Check) -> View:
    """One finding of the doctor."""
    return {"name": check.name, "level": check.level.value, "sentence": check.sentence}


def trigger_view(trigger: str) -> object:
    """A stored trigger, or its bare text if another version wrote it in a way that is not JSON."""
    try:
        return json.loads(trigger)
    except ValueError:
        return trigger


def slot_view(slot: Slot) -> View:
    """One row of the ledger."""
    return {
        "schedule": slot.schedule,
        "slot_at": iso(slot.slot_at),
        "disposition": slot.disposition.value,
        "reason": slot.reason,
        "since": iso(slot.since),
        "job_id": slot.job_id,
        "decided_at": iso(slot.decided_at),
        "blocker": slot.blocker,
        "note": slot.note,
    }


def member_view(member: MemberInfo) -> View:
    """One start of one process."""
    return {
        "id": member_id(member.id),
        "role": member.role.value,
        "name": member.name,
        "queues": list(member.queues),
        "tasks": list(member.tasks),
        "version": member.version,
        "tzdata": member.tzdata,
        "started_at": iso(member.started_at),
        "lease_until": iso(member.lease_until),
        "alive": member.alive,
        "skew_seconds": None if member.skew is None else member.skew.total_seconds(),
        "holding": member.holding,
    }


def depth_view(depth: QueueDepth) -> View:
    """What stands in one queue for one task."""
    return {
        "queue": depth.queue,
        "task": depth.task,
        "ready": depth.ready,
        "delayed": depth.delayed,
        "running": depth.running,
        "oldest_ready_at": iso(depth.oldest_ready_at),
        **({"about": True} if depth.about else {}),
    }


def moments_view(moments: Sequence[datetime] | None) -> list[str | None] | None:
    """Instants in order, or None when they are not known."""
    return None if moments is None else [iso(each) for each in moments]


def iso(moment: datetime | None) -> str | None:
    """A moment in UTC, always with its offset."""
    return None if moment is None else moment.astimezone(UTC).isoformat()


def member_id(value: int | None) -> str | None:
    """In hexadecimal, as the log writes it: the number is too long for JSON readers with doubles."""
    return None if value is None else f"{value:x}"


def call_view(payload: bytes) -> View:
    """The arguments of a call."""
    try:
        args, kwargs = decode(payload)
    except InvalidArgument:
        # Written by another hand: shown as it is rather than hidden behind an error.
        return {"args": None, "kwargs": None, "payload": payload.decode(errors="replace")}
    return {"args": args, "kwargs": kwargs}


def _result(result: bytes | None) -> object:
    return None if result is None or result == RESULT_GONE else msgspec.json.decode(result)


def _gone(result: bytes | None) -> View:
    """Said only where it is so: a result that is no longer kept is not the same as none."""
    return {"result_gone": True} if result == RESULT_GONE else {}
