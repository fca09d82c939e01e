"""Explains the state of a job or a workflow, from facts that were read before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import assert_never

import msgspec

from mainspring.admin.queues import LimitView, in_the_way
from mainspring.admin.views import iso, process_id, to_json
from mainspring.admin.why.answer import Answer, Because, answer
from mainspring.admin.words import error, length, moment
from mainspring.admin.workflows.views import NodeView, WorkflowView
from mainspring.model.checkpoint import Checkpoint, CheckpointKind
from mainspring.model.job import Job, JobState, tried_since
from mainspring.model.limit import LimitKeyInfo
from mainspring.model.process import ProcessInfo, Role
from mainspring.model.queue import QueuePause
from mainspring.model.run import Progress, Reason, Run, Verdict
from mainspring.model.value import Value
from mainspring.model.workflow import LIVE_STEPS, Cause, StepRecord, Stopping, WorkflowRecord
from mainspring.rules.settle import CRASHES_ALLOWED
from mainspring.store.store import Store

_FOR_EVER, _END_OF_TIME = 9996, 9999
_NAMED = 5
_WHY_SKIPPED = {
    Cause.CONDITION: "for it was not to run after what happened before it",
    Cause.ITSELF: "by its own handler",
    Cause.INPUT: "for a step whose result it needs was skipped",
    Cause.FAILURE: "for a step before it failed",
    Cause.STOPPED: "for the workflow was stopped",
}


class JobFacts(Value, frozen=True, kw_only=True):
    """The facts about one job and the jobs around it."""

    job: Job
    now: datetime
    processes: tuple[ProcessInfo, ...] = ()
    runs: tuple[Run, ...] = ()
    reason: str | None = None
    """The reason of a dead letter."""
    ahead: int = 0
    """How many ready jobs of its queue are claimed before this job."""
    counted_all: bool = True
    blocker: int | None = None
    """The live job of the same schedule that must end first."""
    limit_keys: tuple[LimitKeyInfo, ...] = ()
    """The limits that the job waits for."""
    pause: QueuePause | None = None
    """The pause of its queue."""
    progress: Progress | None = None
    """The progress that a running job reported."""
    awaits: str | None = None
    """The event that the job waits for."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """The records of its runs."""
    step: StepOf | None = None
    """The step, if the job is a step of a workflow."""


class StepOf(Value, frozen=True, kw_only=True):
    """The step, or the item of a map, to which a job belongs."""

    workflow: WorkflowRecord
    name: str
    """The name of the step."""
    step: StepRecord

    def __str__(self) -> str:
        item = "" if self.step.item is None else f"[{self.step.item}]"
        return f"step {self.name}{item} of workflow {self.workflow.id} ({self.workflow.name})"


class Obstacle(Value, frozen=True, kw_only=True):
    """Why no live worker will claim a job, and the numbers of workers."""

    because: Because | None
    sentence: str
    live: int
    serving: int
    able: int


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


def why_running(job_id: int, view: WorkflowView, step: StepOf | None = None) -> Answer:
    """What the job of a started workflow waits for: its steps."""
    row = view
    live = [
        each for each in view.nodes if each.state not in ("waiting", "skipped") and each.finished_at is None
    ]
    ended = sum(each.finished_at is not None for each in view.nodes)
    said = f"Job {job_id} is workflow {row.name}, which runs: {ended} of {len(view.nodes)} steps have ended"
    if live:
        more = f" and {len(live) - _NAMED} more" if len(live) > _NAMED else ""
        said += f"; it waits for {', '.join(map(_standing, live[:_NAMED]))}{more}"
    else:
        said += "; nothing of it is in a queue"
    return answer(
        Because.WORKFLOW,
        f"{said}.{_held(view)}{'' if step is None else f' It is {step}.'}",
        job_id=job_id,
        state="running",
        workflow=row.name,
        paused_at=iso(row.paused_at),
        stopping=row.stopping,
        waits_for=[each.name for each in live],
        counts=view.counts,
    )


def why_unmade(place: StepOf, view: WorkflowView) -> Answer:
    """Why a step has no job."""
    step, name = place.step, f"Job {place.step.id}, {place},"
    because, said = Because.STEP, ""
    node = next((each for each in view.nodes if each.name == place.name), None)
    if node is not None and node.items is not None and node.items.total:
        said = f"Job {step.id} is {place}: a map, whose {node.items.total} items are jobs of their own."
    elif step.state in LIVE_STEPS:
        states = {each.name: each for each in view.nodes}
        parents = [states[each] for each in (() if node is None else node.parents)]
        left = [each for each in parents if each.finished_at is None and each.state != "skipped"]
        waits = f"it waits for {', '.join(map(_standing, left[:_NAMED]))}" if left else "nothing is before it"
        said = f"{name} has not been made yet: {waits}.{_held(view)}"
    elif step.cause is not None:
        because, said = Because.SKIPPED, f"{name} was never made: it was skipped, {_WHY_SKIPPED[step.cause]}."
    elif node is not None and node.kept:
        said = f"{name} was never made: its result was taken over from workflow {view.forked_from}."
    else:
        error = "" if node is None or node.error is None else f": {node.error}"
        said = f"{name} was never made, or is not on record any more; the step {step.state}{error}."
    return answer(
        because, said, job_id=step.id, state=step.state.value, workflow_id=place.workflow.id, step=place.name
    )


def obstacle(job: Job, processes: Sequence[ProcessInfo]) -> Obstacle:
    """Find live workers of its queue that know its task; `because` is None if there are some."""
    workers = [each for each in processes if each.alive and each.role is Role.WORKER]
    serving = [each for each in workers if job.queue in each.queues]
    able = [each for each in serving if job.task in each.tasks]
    because, sentence = None, ""
    if not serving:
        because, sentence = Because.QUEUE_UNSERVED, f"no live worker serves queue {job.queue}"
    elif not able:
        because, sentence = Because.TASK_UNKNOWN, f"no live worker of its queue knows task {job.task}"
    return Obstacle(
        because=because, sentence=sentence, live=len(workers), serving=len(serving), able=len(able)
    )


def hint(job: Job, processes: Sequence[ProcessInfo]) -> str | None:
    """A note about one job in a list of jobs; None if there is nothing to note."""
    if job.state is not JobState.READY:
        return None
    return obstacle(job, processes).sentence or None


async def step_of(store: Store, job_id: int) -> StepOf | None:
    """The step to which a job belongs, also before the job is created."""
    step = await store.workflows.step(job_id)
    workflow = None if step is None else await store.workflows.get(step.workflow_id)
    if step is None or workflow is None:
        return None
    definition = await store.workflows.definition(workflow.definition_id)
    return StepOf(workflow=workflow, name=definition.nodes[step.place].name, step=step)


def retry_words(workflow_id: int | str) -> str:
    """The command that runs the dead steps of a workflow again."""
    return f"mainspring workflows retry {workflow_id}"


def is_held(job: Job) -> bool:
    """Whether the job waits for earlier jobs of its schedule. The store writes this as a due time in 9999."""
    return job.state is JobState.DELAYED and job.schedule_id is not None and job.run_at.year == _END_OF_TIME


def goes_before(job: Job) -> tuple[int, datetime, int]:
    """The sort key of ready jobs: workers claim the smallest first."""
    return -job.priority, job.run_at, job.id


def _delayed(facts: JobFacts) -> Answer:
    job = facts.job
    if is_held(job):
        until = "earlier jobs have" if facts.blocker is None else f"earlier job {facts.blocker} has"
        sentence = f"Job {job.id} is held until its schedule's {until} ended."
        return _answer(Because.HELD, facts, sentence, blocker=facts.blocker)
    if job.waits_for_limit and job.run_at <= facts.now:
        sentence = f"Job {job.id} waits for its limits: {in_the_way(list(facts.limit_keys))}."
        return _answer(
            Because.LIMITED,
            facts,
            sentence,
            limits=to_json([LimitView.of(each) for each in facts.limit_keys]),
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


def _awaiting(facts: JobFacts, name: str, wait: str, due: Mapping[str, object]) -> Answer:
    job = facts.job
    endless = job.run_at.year >= _FOR_EVER
    until = "for however long it takes" if endless else f"until {wait}"
    send = f"mainspring events send {name} --job {job.id}"
    sentence = f"Job {job.id} waits for event {name}, {until}.{_deadline(facts)} Send it with `{send}`."
    return _answer(Because.AWAITING, facts, sentence, event=name, **({} if endless else due))


def _deadline(facts: JobFacts) -> str:
    expires_at = facts.job.expires_at
    if expires_at is None:
        return ""
    if expires_at <= facts.now:
        ends = "is being ended" if facts.job.state is JobState.RUNNING else "does not run any more"
        return f" Its deadline was {moment(expires_at)}: it {ends}, and becomes a dead letter."
    return f" It expires at {moment(expires_at)}, in {length(expires_at - facts.now)}."


def _sleeps(facts: JobFacts) -> bool:
    """Whether a recorded sleep of the job is not over."""
    sleeps = [each for each in facts.checkpoints if each.name.startswith(CheckpointKind.SLEEP.key(""))]
    ends = [each.done_at + timedelta(seconds=msgspec.json.decode(each.value or b"0")) for each in sleeps]
    return any(end > facts.now for end in ends)


def _after_failure(job: Job) -> str:
    said = f"after {_failure_number(job)}"
    if not job.errors:
        return said
    last = job.errors[-1]
    at = "" if last.at is None else f" at {moment(last.at)}"
    return f"{said}{at}: {error(last)}"


def _failure_number(job: Job) -> str:
    # A rule of its task's retry policy may allow more attempts than the job.
    of = f" of {job.max_attempts}" if job.failures <= job.max_attempts else ""
    return f"failure {job.failures}{of}"


def _ready(facts: JobFacts) -> Answer:
    job = facts.job
    if facts.pause is not None:
        return _paused(facts, facts.pause)
    found = obstacle(job, facts.processes)
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


def _history(facts: JobFacts) -> str:
    job = facts.job
    said = f" It is back {_after_failure(job)}." if job.failures else ""
    often = "once" if job.crashes == 1 else f"{job.crashes} times"
    said += f" Its process was lost {often}." if job.crashes else ""
    if facts.runs and facts.runs[-1].verdict is Verdict.CRASHED:
        said += " It was in hand when a process died, so it runs in a child, once a worker has one free."
    return said


def _running(facts: JobFacts) -> Answer:
    job = facts.job
    worker = next((each for each in facts.processes if each.id == job.worker_id), None)
    name = process_id(job.worker_id) if worker is None else f"{worker.name} ({process_id(worker.id)})"
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
        worker_id=process_id(job.worker_id),
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


def _at(job: Job) -> str:
    return "" if job.finished_at is None else f" at {moment(job.finished_at)}"


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


def _cancelled(facts: JobFacts) -> Answer:
    job, last = facts.job, facts.runs[-1] if facts.runs else None
    was = "while it ran" if last is not None and last.started_at is not None else "before it ran"
    return _answer(
        Because.CANCELLED,
        facts,
        f"Job {job.id} was cancelled{_at(job)}, {was}.",
        finished_at=iso(job.finished_at),
    )


def _discarded(facts: JobFacts) -> Answer:
    job, last = facts.job, facts.runs[-1] if facts.runs else None
    why = "" if last is None or last.failure is None else f": {' '.join(last.failure.message.split())}"
    said = f"Job {job.id} was discarded by its handler{_at(job)}{why}."
    return _answer(Because.DISCARDED, facts, said, finished_at=iso(job.finished_at))


def _standing(node: NodeView) -> str:
    if node.items is not None and node.items.total:
        live = node.items.counts.get("live", 0)
        return f"{node.name} ({node.items.total - live} of {node.items.total} items have ended)"
    return f"{node.name} ({node.state})"


def _held(view: WorkflowView) -> str:
    row = view
    if row.paused_at is not None:
        return f" It is paused since {moment(row.paused_at)}: `mainspring workflows resume {row.id}` goes on."
    match row.stopping:
        case Stopping.CANCELLED | Stopping.KILLED:
            return " It is being cancelled."
        case Stopping.EXPIRED:
            return " Its deadline has passed."
        case None:
            return ""
