"""A job's page and its logs, as JSON."""

from __future__ import annotations

from mainspring.ops.queries import JobHistory, LoggedRun
from mainspring.ops.views import View, iso, job_view, period_view, progress_view, run_view


def job_detail(found: JobHistory) -> View:
    """A job with its runs, and what it has to do with workflows."""
    own: View = {} if found.workflow is None else {"workflow": found.workflow.name}
    if found.step is not None:
        place = found.step
        own |= {"workflow_id": place.workflow.id, "step": place.name, "item": place.step.item}
    return {
        **job_view(found.job),
        "period": period_view(found.period),
        "progress": progress_view(found.progress),
        "awaits": found.awaits,
        **own,
        "runs": [run_view(each) for each in found.runs],
    }


def log_view(logged: LoggedRun) -> View:
    """What was captured of one run."""
    run = logged.run
    return {
        "run": logged.number,
        "attempt": run.attempt,
        "verdict": run.verdict.value,
        "fence": run.fence,
        "finished_at": iso(run.finished_at),
        "log": logged.log,
    }
