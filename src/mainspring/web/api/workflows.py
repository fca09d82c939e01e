"""`/workflows`: see, start and steer graphs of jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.jobs import EnqueueRequest
from mainspring.admin.views import HandleView
from mainspring.admin.workflows.graph import GraphView
from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.admin.workflows.queries import ITEMS, PAGE
from mainspring.admin.workflows.views import StepView, WorkflowRow, WorkflowView
from mainspring.errors import NotFound
from mainspring.model.access import AccessRole
from mainspring.model.workflow import WorkflowState
from mainspring.tasks.workflow_task import PREFIX, WorkflowTask
from mainspring.web.api.answers import answers, answers_page, json, page
from mainspring.web.api.jobs import Key, Once
from mainspring.web.api.values import (
    Body,
    Cursor,
    Id,
    InPath,
    Length,
    Limit,
    Line,
    Moment,
    Name,
    Params,
    at,
    cursor,
    name_of,
    position,
    request_key,
)
from mainspring.web.auth.policy import Routes
from mainspring.web.middleware.routes import ApiRoute
from mainspring.web.problems import Problem
from mainspring.web.services import AnAdmin, TheServices

routes = Routes("workflows", ApiRoute, prefix="/api/v1", tags=["workflows"])


class Which(Params):
    """Which workflows."""

    name: Name | None = None
    state: WorkflowState | None = None
    limit: Limit = 50
    cursor: Cursor = None


class Start(Body):
    """A workflow to be started."""

    name: Name
    params: dict[str, Any] = Field(default_factory=dict)
    delay: Length | None = None
    run_at: Moment | None = None
    priority: int | None = Field(default=None, ge=-100, le=100)
    queue: Name | None = None
    key: Key | None = None
    expires: Length | None = None


class WorkflowNote(Body):
    """Why, for the record."""

    note: Line | None = None


class Cancel(WorkflowNote):
    """How to end it."""

    now: bool = Field(default=False, description="Run nothing more, not even what runs always.")


class Retry(WorkflowNote):
    """Which steps; none for all that failed."""

    steps: list[Name] = Field(default_factory=list, max_length=1000)


class Fork(WorkflowNote):
    """Where it begins anew."""

    step: Name


@routes.get("/workflows", **answers_page(WorkflowRow))
async def list_workflows(admin: AnAdmin, which: Annotated[Which, Query()]) -> Response:
    """Newest first."""
    question = ("workflows", which.name, which.state)
    before = position(which.cursor, *question)
    found = await admin.workflows.afind(
        name=which.name,
        state=which.state,
        before=before if isinstance(before, int) else None,
        limit=which.limit,
    )
    following = cursor(found[-1].id, *question) if len(found) == which.limit else None
    return page(found, following)


@routes.post(
    "/workflows",
    role=AccessRole.OPERATOR,
    order=Workflows.astart,
    **answers(HandleView, status=201, also=200),
)
async def start(request: Request, admin: AnAdmin, body: Start, once: Once = None) -> Response:
    """Start a workflow: it has the id of the job that is answered, once a worker has taken that."""
    given = body.model_dump(exclude={"name", "params", "run_at"})
    wanted = EnqueueRequest(
        task=f"{PREFIX}{body.name}", kwargs=body.params, run_at=at(body.run_at, "run_at"), **given
    )
    handle, _ = await admin.workflows.astart(wanted, request=await request_key(request, once))
    return json(HandleView.of(handle), 201 if handle.created else 200)


@routes.get("/workflows/{workflow_id}", **answers(WorkflowView))
async def show(
    admin: AnAdmin, workflow_id: Id, items: Annotated[int, Query(ge=0, le=500)] = ITEMS
) -> Response:
    """One workflow: its graph, its timeline, and what was done to it."""
    return json(await admin.workflows.aget(workflow_id, items=items))


@routes.get("/workflows/{workflow_id}/steps/{step}", **answers(StepView))
async def show_step(
    admin: AnAdmin,
    workflow_id: Id,
    step: InPath,
    item: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
    first: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Limit = PAGE,
) -> Response:
    """One step, or one item of a map: its runs, errors, inputs and output."""
    found = await admin.workflows.astep(workflow_id, name_of(step), item=item, first=first, most=limit)
    return json(found)


@routes.get("/workflows/{workflow_id}/graph", **answers(GraphView))
async def graph(admin: AnAdmin, workflow_id: Id) -> Response:
    """Its graph, with the states of its steps."""
    view = await admin.workflows.aget(workflow_id, items=0)
    states = {each.name: each.state for each in view.nodes}
    return json(GraphView.of(await admin.workflows.adefinition(workflow_id), states))


@routes.get("/workflow-graphs/{name}", **answers(GraphView))
async def declared_graph(services: TheServices, admin: AnAdmin, name: InPath) -> Response:
    """The graph of a workflow as the app declares it, or as the newest one of that name follows it."""
    task = services.app._registry.tasks.get(f"{PREFIX}{name_of(name)}")
    if isinstance(task, WorkflowTask):
        return json(GraphView.of(task.definition, None))
    found = await admin.workflows.anewest(name_of(name))
    if found is None:
        raise NotFound("workflow", name_of(name))
    return json(GraphView.of(found, None))


@routes.post(
    "/workflows/{workflow_id}/cancel",
    role=AccessRole.OPERATOR,
    order=Workflows.acancel,
    **answers(WorkflowDone),
)
async def cancel(admin: AnAdmin, workflow_id: Id, body: Cancel | None = None) -> Response:
    """Take its steps away; what is to run always or to undo them still runs."""
    now = body is not None and body.now
    return _done(await admin.workflows.acancel(workflow_id, now=now, note=_note(body)))


@routes.post(
    "/workflows/{workflow_id}/pause",
    role=AccessRole.OPERATOR,
    order=Workflows.apause,
    **answers(WorkflowDone),
)
async def pause(admin: AnAdmin, workflow_id: Id, body: WorkflowNote | None = None) -> Response:
    """Release no further step; what is in the queue runs."""
    return _done(await admin.workflows.apause(workflow_id, note=_note(body)))


@routes.post(
    "/workflows/{workflow_id}/resume",
    role=AccessRole.OPERATOR,
    order=Workflows.aresume,
    **answers(WorkflowDone),
)
async def resume(admin: AnAdmin, workflow_id: Id, body: WorkflowNote | None = None) -> Response:
    """Go on."""
    return _done(await admin.workflows.aresume(workflow_id, note=_note(body)))


@routes.post(
    "/workflows/{workflow_id}/retry",
    role=AccessRole.OPERATOR,
    order=Workflows.aretry,
    **answers(WorkflowDone),
)
async def retry(admin: AnAdmin, workflow_id: Id, body: Retry | None = None) -> Response:
    """Run failed steps again, and what came after them; what succeeded is kept."""
    steps = () if body is None else body.steps
    return _done(await admin.workflows.aretry(workflow_id, steps, note=_note(body)))


@routes.post(
    "/workflows/{workflow_id}/fork",
    role=AccessRole.OPERATOR,
    order=Workflows.afork,
    **answers(WorkflowDone, status=201),
)
async def fork(admin: AnAdmin, workflow_id: Id, body: Fork) -> Response:
    """Start a new workflow that has the results of the steps before one, and runs the rest again."""
    return json(await admin.workflows.afork(workflow_id, body.step, note=body.note), 201)


def _note(body: WorkflowNote | None) -> str | None:
    return None if body is None else body.note


def _done(done: WorkflowDone) -> Response:
    if done.effect is WorkflowEffect.NONE and not done.already:
        raise Problem(409, "refused", f"workflow {done.workflow_id} {done.why}")
    return json(done)
