"""Jobs: find them; and one job whole, with its attempts, errors, logs and timeline; cancel and retry it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.admin.jobs import Done, Effect, JobHistory, Jobs
from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.model.job import Job, JobFilter, JobState
from mainspring.model.run import Run, Verdict
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.forms import LARGEST_ID, JobId, Text, Whole, address, one_of
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Payloads
from mainspring.web.rendering import done, page, took
from mainspring.web.services import AnAdmin, Services, TheServices

routes = Routes("jobs", PageRoute, include_in_schema=False)
PAGE = 50
_HEXADECIMAL = re.compile(r"[0-9a-f]{1,16}")
_MOMENT = "a moment in UTC, such as 2026-03-01T09:00"
WIDTH = 1000
_NARROWEST = 4
"""Of a run, so that a short one among long waits can still be seen."""
_WAITS_AGAIN = (Verdict.FAILED, Verdict.CRASHED, Verdict.SNOOZED)
_WORDS = {"waiting": "waited", "backoff": "waited to be tried again", "delayed": "waited for its time"}


class Wanted:
    """The fields of the search, as they were given."""

    def __init__(
        self,
        state: Text = None,
        task: Text = None,
        queue: Text = None,
        key: Text = None,
        schedule: Text = None,
        worker: Text = None,
        since: Text = None,
        until: Text = None,
        before: Whole = None,
    ) -> None:
        self.state, self.before = state, before
        self.fields = {
            "task": task,
            "queue": queue,
            "key": key,
            "schedule": schedule,
            "worker": worker,
            "since": since,
            "until": until,
        }

    @property
    def narrowed(self) -> bool:
        """Whether anything but a state is asked for."""
        return any(value is not None for value in self.fields.values())

    def filter(self) -> JobFilter:
        """For the store."""
        given = self.fields
        return JobFilter(
            state=one_of(JobState, self.state, "state"),
            task=given["task"],
            queue=given["queue"],
            key=given["key"],
            schedule=given["schedule"],
            worker=_process(given["worker"]),
            since=_moment(given["since"], "since"),
            until=_moment(given["until"], "until"),
            before=self.before,
            limit=PAGE,
        )

    def address(self, path: str, *, state: str | None, before: int | None = None) -> str:
        """The same search elsewhere."""
        return address(path, state=state, before=before, **self.fields)


class Part(NamedTuple):
    """A stretch of time, and what the job did in it."""

    kind: str
    start: datetime
    end: datetime
    title: str


class Drawn(NamedTuple):
    """A part with its place on the line."""

    kind: str
    title: str
    x: float
    width: float


TheWanted = Annotated[Wanted, Depends()]


@routes.get("/jobs")
async def jobs(request: Request, services: TheServices, wanted: TheWanted) -> Response:
    text = wanted.fields["task"] or ""
    if text.isdecimal() and text.isascii() and int(text) <= LARGEST_ID:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/{int(text)}", 303)
    return page(request, "jobs.html", **await _list(services, wanted))


@routes.get("/jobs/part")
async def jobs_part(request: Request, services: TheServices, wanted: TheWanted) -> Response:
    return page(request, "parts/jobs.html", **await _list(services, wanted))


@routes.get("/jobs/{job_id}")
async def job(request: Request, services: TheServices, job_id: JobId) -> Response:
    return page(request, "job.html", **await _one(services, job_id))


@routes.get("/jobs/{job_id}/part")
async def job_part(request: Request, services: TheServices, job_id: JobId) -> Response:
    return page(request, "parts/job.html", **await _one(services, job_id))


@routes.post("/jobs/{job_id}/cancel", role=AccessRole.OPERATOR, order=Jobs.acancel)
async def cancel(request: Request, admin: AnAdmin, job_id: JobId) -> Response:
    [answer] = await admin.jobs.acancel(job_id)
    return _done(request, answer, "was cancelled")


@routes.post("/jobs/{job_id}/retry", role=AccessRole.OPERATOR, order=Jobs.aretry)
async def retry(request: Request, admin: AnAdmin, job_id: JobId) -> Response:
    [answer] = await admin.jobs.aretry(job_id)
    again = "is due now" if answer.effect is Effect.HASTENED else "is back in its queue"
    return _done(request, answer, again)


def parts(job: Job, runs: Sequence[Run], now: datetime, running_since: datetime | None) -> list[Part]:
    """From when it was put into the queue until it ended, or now."""
    found: list[Part] = []
    at, waits = job.enqueued_at, "waiting"
    for run in runs:
        if run.started_at is None:
            continue  # no run: an edit, or a job that ended without one
        _add(found, waits, at, run.started_at)
        title = f"attempt {run.attempt}: {run.verdict} after {took(run.finished_at - run.started_at)}"
        found.append(Part(run.verdict.value, run.started_at, run.finished_at, title))
        at, waits = run.finished_at, "backoff" if run.verdict in _WAITS_AGAIN else "waiting"
    return found + _now(job, at, waits, now, running_since)


def drawn(of: Sequence[Part]) -> list[Drawn]:
    """Their places, so that all of them fill the line."""
    if not of:
        return []
    begin, end = of[0].start, max(each.end for each in of)
    whole = max((end - begin).total_seconds(), 0.001)
    places = []
    for each in of:
        x = (each.start - begin).total_seconds() / whole * WIDTH
        width = max((each.end - each.start).total_seconds() / whole * WIDTH, _NARROWEST)
        places.append(Drawn(each.kind, each.title, round(min(x, WIDTH - width), 2), round(width, 2)))
    # Waits first: a run that was widened lies over them.
    return sorted(places, key=lambda each: each.kind not in ("waiting", "backoff", "delayed"))


async def _list(services: Services, wanted: Wanted) -> dict[str, Any]:
    store, shown = await services.store(), Payloads(services)
    found = await store.jobs.page(wanted.filter(), at=services.clock.stamp())
    states = [("Live", None), *((each.value.capitalize(), each.value) for each in JobState)]
    return {
        "jobs": [(each, shown.failure(each.errors[-1] if each.errors else None)) for each in found.jobs],
        "hints": await services.questions.jobs.ahints(found.jobs),
        "partial": found.partial,
        "wanted": wanted,
        "part_url": wanted.address("/jobs/part", state=wanted.state, before=wanted.before),
        "clear": Wanted().address("/jobs", state=wanted.state),
        "tabs": [(title, state, wanted.address("/jobs", state=state)) for title, state in states],
        "older": None
        if found.next is None
        else wanted.address("/jobs", state=wanted.state, before=found.next),
        "newest": None if wanted.before is None else wanted.address("/jobs", state=wanted.state),
    }


def _moment(text: str | None, field: str) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArgument(field, text, _MOMENT) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _process(text: str | None) -> int | None:
    if text is None:
        return None
    if not _HEXADECIMAL.fullmatch(text):
        raise InvalidArgument("worker", text, "an id as the page of workers shows it")
    return int(text, 16)


def _done(request: Request, answer: Done, words: str) -> Response:
    path = f"/jobs/{answer.job_id}"
    if answer.effect is Effect.NONE:
        return done(request, path, f"Job {answer.job_id} {answer.why}; nothing was done.", kind="warn")
    return done(request, path, f"Job {answer.job_id} {words}.")


async def _one(services: Services, job_id: int) -> dict[str, Any]:
    store, admin, shown = await services.store(), services.questions, Payloads(services)
    history = await admin.jobs.aget(job_id)
    now = await store.now(at=services.clock.stamp())
    running = await store.jobs.standings([job_id], at=services.clock.stamp())
    since = running[job_id].claimed_at if job_id in running else None
    processes = {each.id: each for each in await admin.processes.aall()}
    answer = await admin.jobs.awhy(job_id, known=history)
    schedule_id = history.job.schedule_id
    return {
        **_record(history, shown, now, since),
        "logs": [
            (each, None if each.log is None else shown.text(each.log))
            for each in reversed(await admin.jobs.alogs(job_id, known=history))
        ],
        "schedule": None if schedule_id is None else await store.schedules.name_of(schedule_id),
        "why": shown.text(answer.sentence),
        "worker": processes.get(history.job.worker_id or 0),
        "processes": processes,
        "running_since": since,
    }


def _record(history: JobHistory, shown: Payloads, now: datetime, since: datetime | None) -> dict[str, Any]:
    job = history.job
    line = parts(job, history.runs, now, since)
    dead = job.state is JobState.DEAD and job.workflow_id is None
    return {
        "job": job,
        "history": history,
        "runs": [(each, shown.failure(each.failure)) for each in reversed(history.runs)],
        "errors": [shown.failure(each) for each in reversed(job.errors)],
        "call": shown.call(job.payload),
        "result": shown.result(job.result),
        "line": line,
        "drawn": drawn(line),
        "can_cancel": job.state in (JobState.DELAYED, JobState.READY, JobState.RUNNING),
        "can_retry": job.state is JobState.DELAYED or dead,
        "can_edit": dead,
    }


def _now(job: Job, at: datetime, waits: str, now: datetime, running_since: datetime | None) -> list[Part]:
    """What it does since its last run."""
    found: list[Part] = []
    match job.state:
        case JobState.RUNNING if running_since is not None:
            _add(found, waits, at, running_since)
            found.append(Part("running", running_since, now, f"running since {took(now - running_since)}"))
        case JobState.DELAYED:
            _add(found, waits if waits == "backoff" else "delayed", at, now)
        case JobState.READY:
            due = min(max(job.run_at, at), now)
            _add(found, waits if waits == "backoff" else "delayed", at, due)
            _add(found, "waiting", due, now)
        case _:
            pass
    return found


def _add(found: list[Part], kind: str, start: datetime, end: datetime) -> None:
    if end > start:
        found.append(Part(kind, start, end, f"{_WORDS[kind]} {took(end - start)}"))
