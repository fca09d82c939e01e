"""What is done to one workflow from its page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.web.desk import AnAdmin
from mainspring.web.frame.flash import done
from mainspring.web.frame.forms import form_of, text
from mainspring.web.pages.route import PageRoute
from mainspring.web.pages.workflow import valid_id
from mainspring.web.routes import Routes

routes = Routes("workflows", PageRoute, include_in_schema=False)


@routes.post("/workflows/{workflow_id:int}/cancel", role=AccessRole.OPERATOR, order=Workflows.acancel)
async def cancel(request: Request, admin: AnAdmin, workflow_id: int) -> Response:
    said = await form_of(request)
    now = said.get("now") == "on"
    answer = await admin.workflows.acancel(valid_id(workflow_id), now=now, note=text(said, "note"))
    return _said(request, answer, "Cancelled: its steps are taken away.")


@routes.post("/workflows/{workflow_id:int}/pause", role=AccessRole.OPERATOR, order=Workflows.apause)
async def pause(request: Request, admin: AnAdmin, workflow_id: int) -> Response:
    note = text(await form_of(request), "note")
    answer = await admin.workflows.apause(valid_id(workflow_id), note=note)
    return _said(request, answer, "Paused: no further step is released.")


@routes.post("/workflows/{workflow_id:int}/resume", role=AccessRole.OPERATOR, order=Workflows.aresume)
async def resume(request: Request, admin: AnAdmin, workflow_id: int) -> Response:
    return _said(request, await admin.workflows.aresume(valid_id(workflow_id)), "Resumed.")


@routes.post("/workflows/{workflow_id:int}/retry", role=AccessRole.OPERATOR, order=Workflows.aretry)
async def retry(request: Request, admin: AnAdmin, workflow_id: int) -> Response:
    said = await form_of(request)
    step = text(said, "step")
    steps = [] if step is None else [step]
    answer = await admin.workflows.aretry(valid_id(workflow_id), steps, note=text(said, "note"))
    return _said(request, answer, f"Run again: {', '.join(answer.steps)}.")


@routes.post("/workflows/{workflow_id:int}/fork", role=AccessRole.OPERATOR, order=Workflows.afork)
async def fork(request: Request, admin: AnAdmin, workflow_id: int) -> Response:
    said = await form_of(request)
    step = text(said, "step")
    if step is None:
        raise InvalidArgument("step", "", "the step from which on everything runs again")
    answer = await admin.workflows.afork(valid_id(workflow_id), step, note=text(said, "note"))
    words = f"Forked from workflow {workflow_id} at {step}."
    return done(request, f"/workflows/{answer.new_id}", words)


def _said(request: Request, answer: WorkflowDone, words: str) -> Response:
    path = f"/workflows/{answer.workflow_id}"
    if answer.effect is WorkflowEffect.NONE:
        return done(request, path, f"It {answer.why}.", kind="warn")
    return done(request, path, words)
