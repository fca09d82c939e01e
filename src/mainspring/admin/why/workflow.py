"""Why a workflow, or a step whose job was never made, is where it is."""

from __future__ import annotations

from mainspring.admin.views import iso
from mainspring.admin.why.answer import Answer, Because, answer
from mainspring.admin.words import moment
from mainspring.admin.workflow_of_job import StepOf
from mainspring.admin.workflows.views import NodeView, WorkflowView
from mainspring.model.workflow import LIVE_STEPS, Cause, Stopping

_NAMED = 5
_WHY_SKIPPED = {
    Cause.CONDITION: "for it was not to run after what happened before it",
    Cause.ITSELF: "by its own handler",
    Cause.INPUT: "for a step whose result it needs was skipped",
    Cause.FAILURE: "for a step before it failed",
    Cause.STOPPED: "for the workflow was stopped",
}


def why_running(job_id: int, view: WorkflowView, step: StepOf | None = None) -> Answer:
    """What the job of a workflow waits for that has been started: its steps."""
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
    """Why there is no job of a step."""
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
