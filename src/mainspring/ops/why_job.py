"""Why a job is where it is: decided from facts that were read before."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from mainspring.model.fleet import MemberInfo, Role
from mainspring.model.history import Run
from mainspring.model.job import Job, JobState
from mainspring.model.limit import GateInfo
from mainspring.model.queue import QueuePause
from mainspring.model.report import Progress
from mainspring.model.value import Value
from mainspring.ops.answer import Answer, Because, answer
from mainspring.ops.limits import gate_view, in_the_way
from mainspring.ops.views import iso, member_id
from mainspring.ops.words import error, length, moment

_END_OF_TIME = 9999


class JobFacts(Value, frozen=True, kw_only=True):
    """What is on record about one job and those around it."""

    job: Job
    now: datetime
    members: tuple[MemberInfo, ...] = ()
    runs: tuple[Run, ...] = ()
    reason: str | None = None
    """Why it died, when it did."""
    ahead: int = 0
    """How many ready jobs of its queue are claimed before it."""
    counted_all: bool = True
    blocker: int | None = None
    """The live job of the same schedule that must end first."""
    gates: tuple[GateInfo, ...] = ()
    """Limits that it has not passed."""
    pause: QueuePause | None = None
    """Its queue's."""
    progress: Progress | None = None
    """How far a running one said it was."""


def why_job(facts: JobFacts) -> Answer:
    """What the job waits for, or how it ended."""
    match facts.job.state:
        case JobState.DELAYED:
            return _delayed(facts)
        case JobState.READY:
            return _ready(facts)
        case JobState.RUNNING:
            return _running(facts)
        case JobState.SUCCEEDED:
            return _succeeded(facts)
        case JobState.DEAD:
            return _dead(facts)
        case JobState.CANCELLED:
            return _cancelled(facts)
        case _:
            assert_never(facts.job.state)


def is_held(job: Job) -> bool:
    """Whether it waits for earlier jobs of its schedule, which is written as being due at the end of time."""
    return job.state is JobState.DELAYED and job.schedule_id is not None and job.run_at.year == _END_OF_TIME


def goes_before(job: Job) -> tuple[int, datetime, int]:
    """What workers sort ready jobs by, first claimed first."""
    return -job.priority, job.run_at, job.id


def _delayed(facts: JobFacts) -> Answer:
    job = facts.job
    if is_held(job):
        until = "earlier jobs have" if facts.blocker is None else f"earlier job {facts.blocker} has"
        sentence = f"Job {job.id} is held until its schedule's {until} ended."
        return _answer(Because.HELD, facts, sentence, blocker=facts.blocker)
    if job.waits_for_limit and job.run_at <= facts.now:
        sentence = f"Job {job.id} waits for its limits: {in_the_way(list(facts.gates))}."
        return _answer(Because.LIMITED, facts, sentence, limits=[gate_view(each) for each in facts.gates])
    wait = f"{moment(job.run_at)}, in {length(job.run_at - facts.now)}"
    due = {"run_at": iso(job.run_at), "seconds": (job.run_at - facts.now).total_seconds()}
    if job.failures:
        sentence = f"Job {job.id} waits to be retried at {wait}, {_after_failure(job)}."
        return _answer(Because.RETRYING, facts, sentence, **due)
    return _answer(Because.DUE_LATER, facts, f"Job {job.id} is waiting for its time: {wait}.", **due)


def _ready(facts: JobFacts) -> Answer:
    job = facts.job
    workers = [each for each in facts.members if each.alive and each.role is Role.WORKER]
    serving = [each for each in workers if job.queue in each.queues]
    able = [each for each in serving if job.task in each.tasks]
    counts = {"live_workers": len(workers), "serving_queue": len(serving), "knowing_task": len(able)}
    because, missing = Because.IN_LINE, ""
    if facts.pause is not None:
        return _paused(facts, facts.pause)
    if not serving:
        because, missing = Because.QUEUE_UNSERVED, f"no live worker serves queue {job.queue}"
    elif not able:
        because, missing = Because.TASK_UNKNOWN, f"no live worker of its queue knows task {job.task}"
    if missing:
        sentence = f"Job {job.id} is ready, but {missing} (live workers: {len(workers)}).{_history(job)}"
        return _answer(because, facts, sentence, **counts)
    least = "" if facts.counted_all else "at least "
    place = f"waiting behind {least}{facts.ahead} others" if facts.ahead else "the next of its queue"
    waited = length(facts.now - job.run_at)
    sentence = f"Job {job.id} is ready since {waited} and {place}; live workers for it: {len(able)}."
    return _answer(because, facts, sentence + _history(job), **counts, ahead=facts.ahead)


def _paused(facts: JobFacts, pause: QueuePause) -> Answer:
    note = f": {pause.note}" if pause.note else ""
    by = f"by {pause.paused_by} at {moment(pause.paused_at)}{note}"
    return _answer(
        Because.QUEUE_PAUSED,
        facts,
        f"Job {facts.job.id} is ready, but its queue {facts.job.queue} was paused {by}.",
        paused_by=pause.paused_by,
        paused_at=iso(pause.paused_at),
        pause_note=pause.note,
    )


def _running(facts: JobFacts) -> Answer:
    job = facts.job
    worker = next((each for each in facts.members if each.id == job.worker_id), None)
    name = member_id(job.worker_id) if worker is None else f"{worker.name} ({member_id(worker.id)})"
    alive = worker is not None and worker.alive
    said = f"Job {job.id} is running on worker {name}, attempt {job.failures + 1} of {job.max_attempts}"
    if worker is None:
        rest = "the worker has left, and the job will be given back."
    elif alive:
        rest = f"the worker's lease is alive until {moment(worker.lease_until)}."
    else:
        rest = f"the worker's lease ended at {moment(worker.lease_until)}: the job will be given back."
    return _answer(
        Because.RUNNING if alive else Because.LEASE_ENDED,
        facts,
        f"{said}{_so_far(facts)}; {rest}",
        worker=None if worker is None else worker.name,
        worker_id=member_id(job.worker_id),
        lease_until=None if worker is None else iso(worker.lease_until),
        lease_alive=alive,
        progress=None if facts.progress is None else facts.progress.fraction,
        progress_note=None if facts.progress is None else facts.progress.note or None,
        progress_at=None if facts.progress is None else iso(facts.progress.at),
    )


def _so_far(facts: JobFacts) -> str:
    progress = facts.progress
    if progress is None:
        return ""
    note = f" ({' '.join(progress.note.split())})" if progress.note else ""
    ago = length(facts.now - progress.at)
    return f", {progress.fraction:.0%} done{note} as of {ago} ago"


def _succeeded(facts: JobFacts) -> Answer:
    job, last = facts.job, facts.runs[-1] if facts.runs else None
    took = ""
    if last is not None and last.started_at is not None:
        ran = last.finished_at - last.started_at
        took = f" on attempt {last.attempt}, after {ran.total_seconds():.1f} s"
    return _answer(
        Because.SUCCEEDED, facts, f"Job {job.id} succeeded{_at(job)}{took}.", finished_at=iso(job.finished_at)
    )


def _dead(facts: JobFacts) -> Answer:
    job = facts.job
    last = f" Its last error: {error(job.errors[-1])}." if job.errors else ""
    reason = f" ({facts.reason})" if facts.reason else ""
    replay = f"mainspring dead replay {job.id}"
    died = f"Job {job.id} died{_at(job)}{reason} after failure {job.failures} of {job.max_attempts}."
    return _answer(
        Because.DEAD,
        facts,
        f"{died}{last} Put it back with `{replay}`.",
        finished_at=iso(job.finished_at),
        reason=facts.reason,
        replay=replay,
    )


def _cancelled(facts: JobFacts) -> Answer:
    job, last = facts.job, facts.runs[-1] if facts.runs else None
    was = "while it ran" if last is not None and last.started_at is not None else "before it ran"
    return _answer(
        Because.CANCELLED,
        facts,
        f"Job {job.id} was cancelled{_at(job)}, {was}.",
        finished_at=iso(job.finished_at),
    )


def _at(job: Job) -> str:
    return "" if job.finished_at is None else f" at {moment(job.finished_at)}"


def _after_failure(job: Job) -> str:
    said = f"after failure {job.failures} of {job.max_attempts}"
    if not job.errors:
        return said
    last = job.errors[-1]
    at = "" if last.at is None else f" at {moment(last.at)}"
    return f"{said}{at}: {error(last)}"


def _history(job: Job) -> str:
    said = f" It is back {_after_failure(job)}." if job.failures else ""
    crashes = f" Its worker was lost {job.crashes} times." if job.crashes else ""
    return said + crashes


def _answer(because: Because, facts: JobFacts, sentence: str, **others: object) -> Answer:
    job = facts.job
    last = job.errors[-1] if job.errors else None
    return answer(
        because,
        sentence,
        job_id=job.id,
        state=job.state.value,
        task=job.task,
        queue=job.queue,
        failures=job.failures,
        max_attempts=job.max_attempts,
        crashes=job.crashes,
        slot_at=iso(job.slot_at),
        last_error=None if last is None else error(last),
        last_error_at=None if last is None else iso(last.at),
        **others,
    )
