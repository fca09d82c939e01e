"""One job whole: its attempts, errors and logs, why it is where it is; cancel and retry it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.jobs import Done, Effect, JobHistory, Jobs
from mainspring.model.access import AccessRole
from mainspring.model.job import Job, JobState
from mainspring.store.store import Store
from mainspring.web.desk import AnAdmin, AtDesk, Desk
from mainspring.web.frame import timeline
from mainspring.web.frame.flash import done
from mainspring.web.frame.rendering import page
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.queries import JobId
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

routes = Routes("jobs", PageRoute, include_in_schema=False)


@routes.get("/jobs/{job_id}")
async def job(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    return page(request, "job.html", **await _one(desk, job_id))


@routes.get("/jobs/{job_id}/part")
async def job_part(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    return page(request, "parts/job.html", **await _one(desk, job_id))


@routes.post("/jobs/{job_id}/cancel", role=AccessRole.OPERATOR, order=Jobs.acancel)
async def cancel(request: Request, admin: AnAdmin, job_id: JobId) -> Response:
    [answer] = await admin.jobs.acancel(job_id)
    return _done(request, answer, "was cancelled")


@routes.post("/jobs/{job_id}/retry", role=AccessRole.OPERATOR, order=Jobs.aretry)
async def retry(request: Request, admin: AnAdmin, job_id: JobId) -> Response:
    [answer] = await admin.jobs.aretry(job_id)
    again = "is due now" if answer.effect is Effect.HASTENED else "is back in its queue"
    return _done(request, answer, again)


def _done(request: Request, answer: Done, words: str) -> Response:
    path = f"/jobs/{answer.job_id}"
    if answer.effect is Effect.NONE:
        return done(request, path, f"Job {answer.job_id} {answer.why}; nothing was done.", kind="warn")
    return done(request, path, f"Job {answer.job_id} {words}.")


async def _one(desk: Desk, job_id: int) -> dict[str, Any]:
    store, admin, shown = await desk.store(), desk.questions, Payloads(desk)
    history = await admin.jobs.aget(job_id)
    now = await store.now(at=desk.clock.stamp())
    running = await store.jobs.standings([job_id], at=desk.clock.stamp())
    since = running[job_id].claimed_at if job_id in running else None
    members = {each.id: each for each in await admin.processes.aall()}
    answer = await admin.jobs.awhy(job_id)
    return {
        **_record(history, shown, now, since),
        "logs": [
            (each, None if each.log is None else shown.text(each.log))
            for each in reversed(await admin.jobs.alogs(job_id))
        ],
        "schedule": await _schedule(store, history.job),
        "why": shown.text(answer.sentence),
        "worker": members.get(history.job.worker_id or 0),
        "members": members,
        "running_since": since,
    }


async def _schedule(store: Store, job: Job) -> str | None:
    return None if job.schedule_id is None else await store.schedules.name_of(job.schedule_id)


def _record(history: JobHistory, shown: Payloads, now: datetime, since: datetime | None) -> dict[str, Any]:
    job = history.job
    line = timeline.parts(job, history.runs, now, since)
    dead = job.state is JobState.DEAD and job.workflow_id is None
    return {
        "job": job,
        "history": history,
        "runs": [(each, shown.failure(each.failure)) for each in reversed(history.runs)],
        "errors": [shown.failure(each) for each in reversed(job.errors)],
        "call": shown.call(job.payload),
        "result": shown.result(job.result),
        "line": line,
        "drawn": timeline.drawn(line),
        "can_cancel": job.state in (JobState.DELAYED, JobState.READY, JobState.RUNNING),
        "can_retry": job.state is JobState.DELAYED or dead,
        "can_edit": dead,
    }
