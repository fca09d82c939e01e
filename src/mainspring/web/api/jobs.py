"""`/jobs`: put them in, look at them, steer them."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal, Self

from fastapi import Header, Query
from pydantic import Field, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.jobs import Done, Effect, EnqueueRequest, JobDetail, Jobs, RunLogView
from mainspring.admin.views import FailureView, HandleView, JobView, ListedJob, RunView
from mainspring.admin.why.answer import answer_view
from mainspring.errors import JobCancelled, JobFailed, ResultGone, WaitTimeout
from mainspring.model.access import AccessRole
from mainspring.model.job import LIVE_STATES, Job, JobFilter, JobState
from mainspring.model.value import Value
from mainspring.web.api.answers import WhyView, answers, answers_items, answers_page, items, json, page
from mainspring.web.api.values import (
    LARGEST_ID,
    AnId,
    Body,
    Cursor,
    Id,
    Length,
    LengthText,
    Limit,
    Moment,
    Name,
    Params,
    Text,
    at,
    cursor,
    length,
    position,
    request_key,
)
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.problems import Problem
from mainspring.web.services import AnAdmin, Services, TheServices

MOST_AT_ONCE = 10_000
LARGEST_BULK = 8 * 1024 * 1024
LONGEST_WAIT = 60
routes = Routes("jobs", ApiRoute, prefix="/api/v1/jobs", tags=["jobs"])
Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class NewJob(Body):
    """A call of a task."""

    task: Name
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    delay: Length | None = None
    run_at: Moment | None = None
    priority: int | None = Field(default=None, ge=-100, le=100)
    queue: Name | None = None
    attempts: int | None = Field(default=None, ge=1)
    key: Key | None = None
    scope: Literal["queued", "finished"] | None = None
    period: Length | None = None
    on_duplicate: Literal["return", "replace", "error"] | None = None
    debounce: Length | None = None
    expires: Length | None = None
    expires_at: Moment | None = None

    def request(self) -> EnqueueRequest:
        """As `Admin` takes it."""
        if self.expires is not None and self.expires_at is not None:
            raise Problem(422, "invalid", "expires: expected it or expires_at, not both", field="expires")
        plain = self.model_dump(exclude={"run_at", "expires_at", "args"})
        return EnqueueRequest(
            **{**plain, "expires": at(self.expires_at, "expires_at") or self.expires},
            args=tuple(self.args),
            run_at=at(self.run_at, "run_at"),
        )


class NewJobs(Body):
    """Calls that are put in together, all or none."""

    jobs: list[NewJob] = Field(min_length=1)


class Ids(Body):
    """Which ones."""

    ids: list[AnId] = Field(min_length=1, max_length=1000)


class NewTime(Body):
    """When a job is to run: at a moment, or so long from now."""

    run_at: Moment | None = None
    delay: Length | None = None


class NewTimes(NewTime, Ids):
    """The same for several jobs."""


class Edit(Body):
    """What becomes of a job that waits; what is not named stays."""

    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    priority: int | None = Field(default=None, ge=-100, le=100)
    queue: Name | None = None
    attempts: int | None = Field(default=None, ge=1)
    expires: Length | None = Field(default=None, description='A duration after it is due, or "never".')
    expires_at: Moment | None = None


class Which(Params):
    """Which jobs; without a state, those that have not ended."""

    state: list[JobState] = Field(default_factory=list, max_length=7)
    task: Name | None = None
    queue: Name | None = None
    key: Text | None = Field(default=None, description="The name of its key, for as long as that is kept.")
    schedule: Name | None = None
    since: Moment | None = Field(default=None, description="Enqueued then or later; of ended ones, ended.")
    until: Moment | None = None
    limit: Limit = 50
    cursor: Cursor = None


class JobResult(Value, frozen=True, kw_only=True):
    """What a job came to."""

    id: int
    state: JobState
    ended: bool
    result: Any
    result_gone: bool
    error: FailureView | None

    @classmethod
    def of(cls, job: Job) -> Self:
        """Of a job; the error is the last one of a dead letter."""
        view = JobView.of(job)
        return cls(
            id=job.id,
            state=job.state,
            ended=job.state not in LIVE_STATES,
            result=view.result,
            result_gone=view.result_gone is True,
            error=view.errors[-1] if job.state is JobState.DEAD and view.errors else None,
        )


Once = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same key and body are answered the same for a day, and make nothing more.",
    ),
]


@routes.post("", role=AccessRole.OPERATOR, order=Jobs.aenqueue, **answers(HandleView, status=201, also=200))
async def enqueue(request: Request, admin: AnAdmin, body: NewJob, once: Once = None) -> Response:
    """Put one job into its queue; it is stored when this answers. 200 when another stands for it."""
    key = await request_key(request, once)
    [handle], again = await admin.jobs.aenqueue([body.request()], request=key)
    return json(HandleView.of(handle), 201 if handle.created else 200, **_replayed(again))


@routes.post("/bulk", role=AccessRole.OPERATOR, order=Jobs.aenqueue, **answers_items(HandleView, status=201))
async def enqueue_many(request: Request, admin: AnAdmin, body: NewJobs, once: Once = None) -> Response:
    """Put many jobs into their queues, all or none, at most 10000 at once."""
    if len(body.jobs) > MOST_AT_ONCE:
        raise Problem(413, "too_many", f"jobs: expected at most {MOST_AT_ONCE}", field="jobs")
    key = await request_key(request, once)
    handles, again = await admin.jobs.aenqueue([each.request() for each in body.jobs], request=key)
    return items([HandleView.of(each) for each in handles], 201, **_replayed(again))


@routes.get("", **answers_page(ListedJob))
async def list_jobs(admin: AnAdmin, which: Annotated[Which, Query()]) -> Response:
    """Newest first. A page may have fewer than asked for and still name a next one."""
    question = ("jobs", *which.model_dump(exclude={"limit", "cursor"}).values())
    before = position(which.cursor, *question)
    found = await admin.jobs.apage(
        JobFilter(
            states=tuple(dict.fromkeys(which.state)),
            task=which.task,
            queue=which.queue,
            key=which.key,
            schedule=which.schedule,
            since=at(which.since, "since"),
            until=at(which.until, "until"),
            before=before if isinstance(before, int) else None,
            limit=which.limit,
        )
    )
    hints = await admin.jobs.ahints(found.jobs)
    views = [ListedJob.of(each, hint=hints.get(each.id)) for each in found.jobs]
    return page(views, None if found.next is None else cursor(found.next, *question))


@routes.post("/cancel", role=AccessRole.OPERATOR, order=Jobs.acancel, **answers_items(Done))
async def cancel_many(admin: AnAdmin, body: Ids) -> Response:
    """Take jobs out of their queues for good; those that run are asked to stop."""
    return _many(await admin.jobs.acancel(body.ids))


@routes.post("/retry", role=AccessRole.OPERATOR, order=Jobs.aretry, **answers_items(Done))
async def retry_many(admin: AnAdmin, body: Ids) -> Response:
    """Make delayed jobs due now, and put dead ones back into their queues."""
    return _many(await admin.jobs.aretry(body.ids))


@routes.post("/reschedule", role=AccessRole.OPERATOR, order=Jobs.areschedule, **answers_items(Done))
async def reschedule_many(admin: AnAdmin, body: NewTimes) -> Response:
    """Have jobs that wait run at another time."""
    return _many(await admin.jobs.areschedule(body.ids, run_at=at(body.run_at, "run_at"), delay=body.delay))


@routes.get("/{job_id}", **answers(JobDetail))
async def show(admin: AnAdmin, job_id: Id) -> Response:
    """One job, with every run of it."""
    return json(JobDetail.of_history(await admin.jobs.aget(job_id)))


@routes.get("/{job_id}/runs", **answers_items(RunView))
async def runs(admin: AnAdmin, job_id: Id) -> Response:
    """Every run of a job, oldest first."""
    found = await admin.jobs.aget(job_id)
    return items([RunView.of(each) for each in found.runs])


@routes.get("/{job_id}/logs", **answers_items(RunLogView))
async def logs(
    admin: AnAdmin, job_id: Id, run: Annotated[int | None, Query(ge=1, le=LARGEST_ID)] = None
) -> Response:
    """The log lines that were captured of a job's runs, or of one of them."""
    found = await admin.jobs.alogs(job_id, number=run)
    return items([RunLogView.of(each) for each in found])


@routes.get("/{job_id}/why", **answers(WhyView))
async def why(admin: AnAdmin, job_id: Id) -> Response:
    """What a job waits for, or how it ended."""
    return json(answer_view(await admin.jobs.awhy(job_id)))


@routes.get("/{job_id}/result", **answers(JobResult))
async def result(
    services: TheServices, admin: AnAdmin, job_id: Id, wait: Annotated[LengthText | None, Query()] = None
) -> Response:
    """What a job came to; with `wait`, once it has ended or that time is over, at most 60 s."""
    most = length(wait, "wait")
    if most is not None and most.total_seconds() > LONGEST_WAIT:
        raise Problem(422, "range", f"wait: expected at most {LONGEST_WAIT} s", field="wait")
    found = await admin.jobs.aget(job_id)
    if most and found.job.state in LIVE_STATES:
        await _ended(services, job_id, most.total_seconds())
        found = await admin.jobs.aget(job_id)
    return json(JobResult.of(found.job))


@routes.post("/{job_id}/cancel", role=AccessRole.OPERATOR, order=Jobs.acancel, **answers(Done))
async def cancel(admin: AnAdmin, job_id: Id) -> Response:
    """Take a job out of its queue for good; one that runs is asked to stop."""
    return one(await admin.jobs.acancel([job_id]))


@routes.post("/{job_id}/retry", role=AccessRole.OPERATOR, order=Jobs.aretry, **answers(Done))
async def retry(admin: AnAdmin, job_id: Id) -> Response:
    """Make a delayed job due now, or put a dead one back into its queue."""
    return one(await admin.jobs.aretry([job_id]))


@routes.post("/{job_id}/reschedule", role=AccessRole.OPERATOR, order=Jobs.areschedule, **answers(Done))
async def reschedule(admin: AnAdmin, job_id: Id, body: NewTime) -> Response:
    """Have a job that waits run at another time."""
    return one(await admin.jobs.areschedule([job_id], run_at=at(body.run_at, "run_at"), delay=body.delay))


@routes.patch("/{job_id}", role=AccessRole.OPERATOR, order=Jobs.aedit, **answers(Done))
async def edit(admin: AnAdmin, job_id: Id, body: Edit) -> Response:
    """Change a job that waits: its arguments, priority, queue, attempts or deadline."""
    if body.expires is not None and body.expires_at is not None:
        raise Problem(422, "invalid", "expires: expected it or expires_at, not both", field="expires")
    done = await admin.jobs.aedit(
        job_id,
        args=body.args,
        kwargs=body.kwargs,
        priority=body.priority,
        queue=body.queue,
        attempts=body.attempts,
        expires=at(body.expires_at, "expires_at") or body.expires,
    )
    return one([done])


async def _ended(services: Services, job_id: int, seconds: float) -> None:
    # What became of it is read anew.
    with suppress(JobFailed, JobCancelled, ResultGone, WaitTimeout):
        await services.app.aresult(job_id, timeout=seconds)


def _replayed(again: bool) -> dict[str, str]:
    return {"Idempotency-Replayed": "true"} if again else {}


def _many(done: list[Done]) -> Response:
    return items(done)


def one(done: list[Done]) -> Response:
    """What became of one job; 409 when nothing did."""
    [only] = done
    if only.effect is Effect.NONE:
        raise Problem(409, "refused", f"job {only.job_id} {only.why}", was=only.was)
    return json(only)
