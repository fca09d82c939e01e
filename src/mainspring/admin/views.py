"""Answers: the form in which programs read each noun, by `--json`, by HTTP and from Python.

Each answer is a frozen struct that is made from the value in the model, or that value itself. The OpenAPI
document is made from the same structs. `to_json` converts an answer to JSON.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import msgspec
from msgspec import UNSET, UnsetType

from mainspring.duration import format_duration
from mainspring.errors import InvalidArgument
from mainspring.model.dead_letter import DeadJob
from mainspring.model.job import Failure, Job, JobState, tried_since
from mainspring.model.process import ProcessInfo, Role
from mainspring.model.run import RESULT_GONE, Progress, Run, Verdict
from mainspring.model.schedule import Misfire, Overlap, Schedule, Slot
from mainspring.model.value import Value
from mainspring.tasks.enqueue import JobHandle
from mainspring.tasks.payload import decode
from mainspring.triggers.slots import UpcomingSlot


def to_json(answer: object) -> Any:
    """An answer, or several, as objects, lists and plain values of JSON; times are ISO 8601 in UTC."""
    return _spelled(msgspec.to_builtins(answer, builtin_types=(datetime,), str_keys=True))


class HandleView(Value, frozen=True, kw_only=True):
    """The answer of an enqueue."""

    id: int
    task: str
    queue: str
    created: bool

    @classmethod
    def of(cls, handle: JobHandle[Any]) -> Self:
        """Of a handle, without its means to wait for the job."""
        return cls(id=handle.id, task=handle.task, queue=handle.queue, created=handle.created)


class CallView(Value, frozen=True, kw_only=True):
    """The arguments of a call."""

    args: list[Any] | None
    kwargs: dict[str, Any] | None
    payload: str | UnsetType = UNSET
    """The stored bytes as text, if they cannot be read as arguments."""


class FailureView(Value, frozen=True, kw_only=True):
    """An error of a handler."""

    type: str
    message: str
    traceback: str
    attempt: int
    at: datetime | None

    @classmethod
    def of(cls, failure: Failure) -> Self:
        """Of a failure, with every field."""
        return cls(
            type=failure.type,
            message=failure.message,
            traceback=failure.traceback,
            attempt=failure.attempt,
            at=failure.at,
        )


class JobView(Value, frozen=True, kw_only=True):
    """A job in any state."""

    id: int
    task: str
    queue: str
    priority: int
    state: JobState
    args: list[Any] | None
    kwargs: dict[str, Any] | None
    payload: str | UnsetType = UNSET
    run_at: datetime
    enqueued_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    max_attempts: int
    failures: int
    crashes: int
    fence: int
    worker_id: str | None
    schedule_id: int | None
    slot_at: datetime | None
    result: Any
    result_gone: bool | UnsetType = UNSET
    """Present if the result was deleted; a job without a result has no such field."""
    errors: tuple[FailureView, ...]

    @classmethod
    def of(cls, job: Job, **more: Any) -> Self:
        """Of a job; `more` are the fields that a larger answer adds."""
        return cls(
            id=job.id,
            task=job.task,
            queue=job.queue,
            priority=job.priority,
            state=job.state,
            **call_view(job.payload),
            run_at=job.run_at,
            enqueued_at=job.enqueued_at,
            finished_at=job.finished_at,
            expires_at=job.expires_at,
            max_attempts=job.max_attempts,
            failures=job.failures,
            crashes=job.crashes,
            fence=job.fence,
            worker_id=process_id(job.worker_id),
            schedule_id=job.schedule_id,
            slot_at=job.slot_at,
            **_result(job.result),
            errors=tuple(FailureView.of(each) for each in job.errors),
            **more,
        )


class ListedJob(JobView, frozen=True, kw_only=True):
    """A job in a list."""

    hint: str | None
    """Why the job does not run, in a few words."""


class DeadView(JobView, frozen=True, kw_only=True):
    """A dead letter: the job, and the reason."""

    died_at: datetime
    reason: str
    first_failed_at: datetime | None
    tried_for_seconds: float | None
    workflow_id: int | UnsetType = UNSET

    @classmethod
    def of_letter(cls, dead: DeadJob) -> Self:
        """Of a dead letter."""
        since = tried_since(dead.errors)
        return cls.of(
            dead.as_job(),
            died_at=dead.died_at,
            reason=dead.reason,
            first_failed_at=since,
            tried_for_seconds=None if since is None else (dead.died_at - since).total_seconds(),
            workflow_id=UNSET if dead.workflow_id is None else dead.workflow_id,
        )


class RunView(Value, frozen=True, kw_only=True):
    """One attempt."""

    job_id: int
    task: str
    queue: str
    attempt: int
    verdict: Verdict
    worker_id: str | None
    fence: int
    started_at: datetime | None
    finished_at: datetime
    seconds: float | None
    failure: FailureView | None
    result: Any
    result_gone: bool | UnsetType = UNSET
    before: CallView | UnsetType = UNSET
    """Only of an edit: the arguments before it."""

    @classmethod
    def of(cls, run: Run) -> Self:
        """Of a run."""
        return cls(
            job_id=run.job_id,
            task=run.task,
            queue=run.queue,
            attempt=run.attempt,
            verdict=run.verdict,
            worker_id=process_id(run.worker_id),
            fence=run.fence,
            started_at=run.started_at,
            finished_at=run.finished_at,
            seconds=None if run.started_at is None else (run.finished_at - run.started_at).total_seconds(),
            failure=None if run.failure is None else FailureView.of(run.failure),
            **_result(run.result),
            before=UNSET if run.payload is None else CallView(**call_view(run.payload)),
        )


class ProgressView(Value, frozen=True, kw_only=True):
    """The progress that the handler of a running job reported."""

    fraction: float
    note: str | None
    at: datetime

    @classmethod
    def of(cls, progress: Progress) -> Self:
        """Of a report of progress."""
        return cls(fraction=progress.fraction, note=progress.note or None, at=progress.at)


class ScheduleView(Value, frozen=True, kw_only=True):
    """A stored schedule."""

    id: int
    name: str
    task: str
    trigger: Any
    args: list[Any] | None
    kwargs: dict[str, Any] | None
    payload: str | UnsetType = UNSET
    queue: str
    priority: int
    max_attempts: int
    misfire: Misfire
    catch_up: str | None
    overlap: Overlap
    overlap_limit: int
    offset: str
    jitter: str
    max_fires: int | None
    expires: str | None
    expect_start_within: str | None
    expect_finish_by: str | None
    fires_left: int | None
    skips: int
    version: int
    active_from: datetime
    edited: bool
    paused_at: datetime | None
    paused_by: str | None
    pause_note: str | None
    next_at: datetime | None

    @classmethod
    def of(cls, schedule: Schedule, **more: Any) -> Self:
        """Of a schedule; `more` are the fields that a larger answer adds."""
        return cls(
            id=schedule.id,
            name=schedule.name,
            task=schedule.task,
            trigger=trigger_view(schedule.trigger),
            **call_view(schedule.payload),
            queue=schedule.queue,
            priority=schedule.priority,
            max_attempts=schedule.max_attempts,
            misfire=schedule.misfire,
            catch_up=_length(schedule.catch_up),
            overlap=schedule.overlap,
            overlap_limit=schedule.overlap_limit,
            offset=format_duration(schedule.offset),
            jitter=format_duration(schedule.jitter),
            max_fires=schedule.max_fires,
            expires=_length(schedule.expires),
            expect_start_within=_length(schedule.expect_start_within),
            expect_finish_by=_length(schedule.expect_finish_by),
            fires_left=schedule.fires_left,
            skips=schedule.skips,
            version=schedule.version,
            active_from=schedule.active_from,
            edited=schedule.edited,
            paused_at=schedule.paused_at,
            paused_by=schedule.paused_by,
            pause_note=schedule.pause_note,
            next_at=schedule.next_at,
            **more,
        )


class ListedSchedule(ScheduleView, frozen=True, kw_only=True):
    """A schedule in a list, with its newest slot."""

    last: Slot | None


class ScheduleDetail(ScheduleView, frozen=True, kw_only=True):
    """A schedule with its newest slots and its next fires."""

    slots: tuple[Slot, ...]
    fires: tuple[datetime, ...] | None
    """None if this version cannot read the trigger."""


class FireView(Value, frozen=True, kw_only=True):
    """One instant of a trigger."""

    at: datetime
    local: str
    """The same instant in the time zone of the trigger, with its offset."""
    note: str | None

    @classmethod
    def of(cls, fire: UpcomingSlot) -> Self:
        """Of an instant."""
        return cls(at=fire.at, local=fire.local.isoformat(), note=fire.note)


class ProcessView(Value, frozen=True, kw_only=True):
    """One start of one process."""

    id: str
    role: Role
    name: str
    queues: tuple[str, ...]
    tasks: tuple[str, ...]
    version: str
    tzdata: str
    started_at: datetime
    lease_until: datetime
    alive: bool
    skew_seconds: float | None
    holding: int

    @classmethod
    def of(cls, process: ProcessInfo) -> Self:
        """Of a process."""
        return cls(
            id=f"{process.id:x}",
            role=process.role,
            name=process.name,
            queues=process.queues,
            tasks=process.tasks,
            version=process.version,
            tzdata=process.tzdata,
            started_at=process.started_at,
            lease_until=process.lease_until,
            alive=process.alive,
            skew_seconds=None if process.skew is None else process.skew.total_seconds(),
            holding=process.holding,
        )


def call_view(payload: bytes) -> dict[str, Any]:
    """The arguments of a call by name, as the fields of an answer have them."""
    try:
        args, kwargs = decode(payload)
    except InvalidArgument:
        # Another program wrote this payload. It is shown unchanged, so that an error does not hide it.
        return {"args": None, "kwargs": None, "payload": payload.decode(errors="replace")}
    return {"args": args, "kwargs": kwargs}


def trigger_view(trigger: str) -> object:
    """A stored trigger, or its text if another version wrote it in a form that is not JSON."""
    try:
        return json.loads(trigger)
    except ValueError:
        return trigger


def iso(moment: datetime | None) -> str | None:
    """A time in UTC, always with its offset."""
    return None if moment is None else moment.astimezone(UTC).isoformat()


def process_id(value: int | None) -> str | None:
    """The id in hexadecimal, as in the log. The number is too long for JSON parsers that use doubles."""
    return None if value is None else f"{value:x}"


def _spelled(value: object) -> object:
    match value:
        case datetime():
            return iso(value)
        case dict():
            return {name: _spelled(each) for name, each in value.items()}
        case list() | tuple():
            return [_spelled(each) for each in value]
        case _:
            return value


def _result(result: bytes | None) -> dict[str, Any]:
    if result == RESULT_GONE:
        return {"result": None, "result_gone": True}
    return {"result": None if result is None else msgspec.json.decode(result)}


def _length(length: timedelta | None) -> str | None:
    return None if length is None else format_duration(length)
