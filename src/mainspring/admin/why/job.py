"""Why a job is where it is: decided from facts that were read before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from mainspring.admin.limits import LimitView, in_the_way
from mainspring.admin.views import iso, member_id, to_json
from mainspring.admin.why.answer import Answer, Because, answer
from mainspring.admin.why.obstacle import obstacle
from mainspring.admin.words import error, length, moment
from mainspring.admin.workflow_of_job import StepOf, retry_words
from mainspring.model.checkpoint import Checkpoint, CheckpointKind
from mainspring.model.job import Job, JobState, tried_since
from mainspring.model.limit import GateInfo
from mainspring.model.process import MemberInfo
from mainspring.model.queue import QueuePause
from mainspring.model.run import Progress, Reason, Run, Verdict
from mainspring.model.value import Value
from mainspring.rules.settle import CRASHES_ALLOWED

_FOR_EVER, _END_OF_TIME = 9996, 9999


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
    awaits: str | None = None
    """The event that it waits for."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """What its runs have recorded."""
    step: StepOf | None = None
    """The step of a workflow that it is."""


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
        case JobState.DISCARDED:
            return _discarded(facts)
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
        return _answer(
            Because.LIMITED, facts, sentence, limits=to_json([LimitView.of(each) for each in facts.gates])
        )
    wait = f"{moment(job.run_at)}, in {length(job.run_at - facts.now)}"
    due = {"run_at": iso(job.run_at), "seconds": (job.run_at - facts.now).total_seconds()}
    last = facts.runs[-1].verdict if facts.runs else None
    if facts.awaits is not None:
        return _awaiting(facts, facts.awaits, wait, due)
    if last is Verdict.SNOOZED and _sleeps(facts):
        because, said = Because.SLEEPING, f"sleeps until {wait}"
    elif last is Verdict.SNOOZED:
        because, said = Because.SNOOZED, f"was snoozed by its handler until {wait}"
    elif last is Verdict.CRASHED:
        because, said = Because.CRASHED, f"waits until {wait}, after crash {job.crashes} of {CRASHES_ALLOWED}"
    elif job.failures:
        because, said = Because.RETRYING, f"waits to be retried at {wait}, {_after_failure(job)}"
    else:
        because, said = Because.DUE_LATER, f"is waiting for its time: {wait}"
    return _answer(because, facts, f"Job {job.id} {said}.{_deadline(facts)}", **due)


def _awaiting(facts: JobFacts, name: str, wait: str, due: Mapping[str, object]) -> Answer:
    job = facts.job
    endless = job.run_at.year >= _FOR_EVER
    until = "for however long it takes" if endless else f"until {wait}"
    send = f"mainspring events send {name} --job {job.id}"
    sentence = f"Job {job.id} waits for event {name}, {until}.{_deadline(facts)} Send it with `{send}`."
    return _answer(Because.AWAITING, facts, sentence, event=name, **({} if endless else due))


def _sleeps(facts: JobFacts) -> bool:
    """Whether a sleep that it put on record is not over."""
    sleeps = [each for each in facts.checkpoints if each.name.startswith(CheckpointKind.SLEEP.key(""))]
    ends = [each.done_at + timedelta(seconds=msgspec.json.decode(each.value or b"0")) for each in sleeps]
    return any(end > facts.now for end in ends)


def _ready(facts: JobFacts) -> Answer:
    job = facts.job
    if facts.pause is not None:
        return _paused(facts, facts.pause)
    found = obstacle(job, facts.members)
    counts = {"live_workers": found.live, "serving_queue": found.serving, "knowing_task": found.able}
    rest = _history(facts) + _deadline(facts)
    if found.because is not None:
        sentence = f"Job {job.id} is ready, but {found.sentence} (live workers: {found.live}).{rest}"
        return _answer(found.because, facts, sentence, **counts)
    least = "" if facts.counted_all else "at least "
    place = f"waiting behind {least}{facts.ahead} others" if facts.ahead else "the next of its queue"
    waited = length(facts.now - job.run_at)
    sentence = f"Job {job.id} is ready since {waited} and {place}; live workers for it: {found.able}."
    return _answer(Because.IN_LINE, facts, sentence + rest, **counts, ahead=facts.ahead)


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
        f"{said}{_so_far(facts)}; {rest}{_deadline(facts)}",
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
    if job.workflow_id is not None:
        replay = retry_words(job.workflow_id)
    died = f"Job {job.id} died{_at(job)}{reason} {_died_of(facts)}."
    return _answer(
        Because.DEAD,
        facts,
        f"{died}{last} {'Put it back' if job.workflow_id is None else 'Run it again'} with `{replay}`.",
        finished_at=iso(job.finished_at),
        reason=facts.reason,
        replay=replay,
    )


def _died_of(facts: JobFacts) -> str:
    job = facts.job
    match facts.reason:
        case Reason.EXPIRED:
            by = "" if job.expires_at is None else f", which was {moment(job.expires_at)}"
            return f"for it had not succeeded by its deadline{by}"
        case Reason.CRASHED:
            return f"after its process had died under it {job.crashes} times"
        case _:
            return f"after {_failure_number(job)}{_tried_for(job)}"


def _tried_for(job: Job) -> str:
    since = tried_since(job.errors)
    if since is None or job.finished_at is None or job.failures < 2:
        return ""
    return f"; it was tried for {length(job.finished_at - since)}"


def _discarded(facts: JobFacts) -> Answer:
    job, last = facts.job, facts.runs[-1] if facts.runs else None
    why = "" if last is None or last.failure is None else f": {' '.join(last.failure.message.split())}"
    said = f"Job {job.id} was discarded by its handler{_at(job)}{why}."
    return _answer(Because.DISCARDED, facts, said, finished_at=iso(job.finished_at))


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
    said = f"after {_failure_number(job)}"
    if not job.errors:
        return said
    last = job.errors[-1]
    at = "" if last.at is None else f" at {moment(last.at)}"
    return f"{said}{at}: {error(last)}"


def _failure_number(job: Job) -> str:
    # A rule of its task's retry policy may allow more than the job itself says.
    of = f" of {job.max_attempts}" if job.failures <= job.max_attempts else ""
    return f"failure {job.failures}{of}"


def _deadline(facts: JobFacts) -> str:
    expires_at = facts.job.expires_at
    if expires_at is None:
        return ""
    if expires_at <= facts.now:
        ends = "is being ended" if facts.job.state is JobState.RUNNING else "does not run any more"
        return f" Its deadline was {moment(expires_at)}: it {ends}, and becomes a dead letter."
    return f" It expires at {moment(expires_at)}, in {length(expires_at - facts.now)}."


def _history(facts: JobFacts) -> str:
    job = facts.job
    said = f" It is back {_after_failure(job)}." if job.failures else ""
    often = "once" if job.crashes == 1 else f"{job.crashes} times"
    said += f" Its process was lost {often}." if job.crashes else ""
    if facts.runs and facts.runs[-1].verdict is Verdict.CRASHED:
        said += " It was in hand when a process died, so it runs in a child, once a worker has one free."
    return said


def _answer(because: Because, facts: JobFacts, sentence: str, **others: object) -> Answer:
    job, step = facts.job, facts.step
    last = job.errors[-1] if job.errors else None
    return answer(
        because,
        sentence if step is None else f"{sentence} It is {step}.",
        job_id=job.id,
        state=job.state.value,
        task=job.task,
        queue=job.queue,
        failures=job.failures,
        max_attempts=job.max_attempts,
        crashes=job.crashes,
        slot_at=iso(job.slot_at),
        expires_at=iso(job.expires_at),
        last_error=None if last is None else error(last),
        last_error_at=None if last is None else iso(last.at),
        workflow_id=None if step is None else step.workflow.id,
        step=None if step is None else step.name,
        item=None if step is None else step.step.item,
        **others,
    )
