"""Jobs: find them, see one of them whole, cancel and retry it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.model.access import AccessRole
from mainspring.model.history import JobFilter
from mainspring.model.job import JobState
from mainspring.ops.commands import Done, Effect
from mainspring.ops.queries import JobHistory
from mainspring.ops.why import Why
from mainspring.web import timeline
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.flash import done
from mainspring.web.pages import payloads
from mainspring.web.pages.queries import LARGEST_ID, JobId, Text, Whole, address, one_of
from mainspring.web.pages.route import PageRoute
from mainspring.web.rendering import page
from mainspring.web.routes import Routes

PAGE = 50
routes = Routes("jobs", PageRoute, include_in_schema=False)


@routes.get("/jobs")
async def jobs(
    request: Request,
    desk: AtDesk,
    state: Text = None,
    task: Text = None,
    queue: Text = None,
    before: Whole = None,
) -> Response:
    if task is not None and task.isdecimal() and int(task) <= LARGEST_ID:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/{int(task)}", 303)
    return page(request, "jobs.html", **await _list(desk, state, task, queue, before))


@routes.get("/jobs/part")
async def jobs_part(
    request: Request,
    desk: AtDesk,
    state: Text = None,
    task: Text = None,
    queue: Text = None,
    before: Whole = None,
) -> Response:
    return page(request, "parts/jobs.html", **await _list(desk, state, task, queue, before))


@routes.get("/jobs/{job_id}")
async def job(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    return page(request, "job.html", **await _one(desk, job_id))


@routes.get("/jobs/{job_id}/part")
async def job_part(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    return page(request, "parts/job.html", **await _one(desk, job_id))


@routes.post("/jobs/{job_id}/cancel", role=AccessRole.OPERATOR, act="jobs.cancel")
async def cancel(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    [answer] = await (await desk.commands()).cancel([job_id])
    return _done(request, answer, "was cancelled")


@routes.post("/jobs/{job_id}/retry", role=AccessRole.OPERATOR, act="jobs.retry")
async def retry(request: Request, desk: AtDesk, job_id: JobId) -> Response:
    [answer] = await (await desk.commands()).retry([job_id])
    again = "is due now" if answer.effect is Effect.HASTENED else "is back in its queue"
    return _done(request, answer, again)


def _done(request: Request, answer: Done, words: str) -> Response:
    path = f"/jobs/{answer.job_id}"
    if answer.effect is Effect.NONE:
        return done(request, path, f"Job {answer.job_id} {answer.why}; nothing was done.", kind="warn")
    return done(request, path, f"Job {answer.job_id} {words}.")


async def _list(
    desk: Desk, state: str | None, task: str | None, queue: str | None, before: int | None
) -> dict[str, Any]:
    queries = await desk.queries()
    found = await queries.jobs(
        JobFilter(
            state=one_of(JobState, state, "state"),
            task=task,
            queue=queue,
            before=before,
            limit=PAGE + 1,
        )
    )
    shown = found[:PAGE]
    asked = {"task": task, "queue": queue}
    return {
        "jobs": shown,
        "hints": await queries.hints(shown),
        "asked": {"state": state, **asked},
        "part_url": address("/jobs/part", state=state, before=before, **asked),
        "tabs": [
            ("Live", None, address("/jobs", **asked)),
            *(
                (each.value.capitalize(), each.value, address("/jobs", state=each, **asked))
                for each in JobState
            ),
        ],
        "older": address("/jobs", state=state, before=shown[-1].id, **asked) if len(found) > PAGE else None,
        "newest": address("/jobs", state=state, **asked) if before is not None else None,
    }


async def _one(desk: Desk, job_id: int) -> dict[str, Any]:
    store, queries = await desk.store(), await desk.queries()
    history = await queries.job(job_id)
    now = await store.now(at=desk.clock.stamp())
    running = await store.standings([job_id], at=desk.clock.stamp())
    since = running[job_id].claimed_at if job_id in running else None
    members = {each.id: each for each in await queries.members()}
    return {
        **_record(history, now, since),
        "logs": [
            (each, None if each.log is None else payloads.text(each.log))
            for each in reversed(await queries.logs(job_id))
        ],
        "why": await Why(store, desk.clock).job(job_id),
        "worker": members.get(history.job.worker_id or 0),
        "members": members,
        "running_since": since,
    }


def _record(history: JobHistory, now: datetime, since: datetime | None) -> dict[str, Any]:
    job = history.job
    line = timeline.parts(job, history.runs, now, since)
    return {
        "job": job,
        "history": history,
        "runs": [(each, payloads.failure(each.failure)) for each in reversed(history.runs)],
        "errors": [payloads.failure(each) for each in reversed(job.errors)],
        "call": payloads.call(job.payload),
        "result": payloads.result(job.result),
        "line": line,
        "drawn": timeline.drawn(line),
        "can_cancel": job.state in (JobState.DELAYED, JobState.READY, JobState.RUNNING),
        "can_retry": job.state is JobState.DELAYED
        or (job.state is JobState.DEAD and job.workflow_id is None),
    }
