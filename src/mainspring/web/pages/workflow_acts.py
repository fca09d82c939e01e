"""What is done to one workflow from its page."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.ops.workflows.orders import WorkflowCommands, WorkflowDone, WorkflowEffect
from mainspring.web.access.identity import actor_of
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.flash import done
from mainspring.web.frame.forms import form_of, text
from mainspring.web.pages.route import PageRoute
from mainspring.web.pages.workflow import valid_id
from mainspring.web.routes import Routes

routes = Routes("workflows", PageRoute, include_in_schema=False)


@routes.post("/workflows/{workflow_id:int}/cancel", role=AccessRole.OPERATOR, act="workflows.cancel")
async def cancel(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    said = await form_of(request)
    commands = await _commands(request, desk, text(said, "note"))
    answer = await commands.cancel(valid_id(workflow_id), now=said.get("now") == "on")
    return _said(request, answer, "Cancelled: its steps are taken away.")


@routes.post("/workflows/{workflow_id:int}/pause", role=AccessRole.OPERATOR, act="workflows.pause")
async def pause(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    commands = await _commands(request, desk, text(await form_of(request), "note"))
    return _said(request, await commands.pause(valid_id(workflow_id)), "Paused: no further step is released.")


@routes.post("/workflows/{workflow_id:int}/resume", role=AccessRole.OPERATOR, act="workflows.resume")
async def resume(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    commands = await _commands(request, desk, None)
    return _said(request, await commands.resume(valid_id(workflow_id)), "Resumed.")


@routes.post("/workflows/{workflow_id:int}/retry", role=AccessRole.OPERATOR, act="workflows.retry")
async def retry(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    said = await form_of(request)
    step = text(said, "step")
    commands = await _commands(request, desk, text(said, "note"))
    answer = await commands.retry(valid_id(workflow_id), [] if step is None else [step])
    return _said(request, answer, f"Run again: {', '.join(answer.steps)}.")


@routes.post("/workflows/{workflow_id:int}/fork", role=AccessRole.OPERATOR, act="workflows.fork")
async def fork(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    said = await form_of(request)
    step = text(said, "step")
    if step is None:
        raise InvalidArgument("step", "", "the step from which on everything runs again")
    commands = await _commands(request, desk, text(said, "note"))
    answer = await commands.fork(valid_id(workflow_id), step)
    words = f"Forked from workflow {workflow_id} at {step}."
    return done(request, f"/workflows/{answer.new_id}", words)


async def _commands(request: Request, desk: Desk, note: str | None) -> WorkflowCommands:
    return WorkflowCommands(await desk.store(), desk.clock, author=actor_of(request).name, note=note)


def _said(request: Request, answer: WorkflowDone, words: str) -> Response:
    path = f"/workflows/{answer.workflow_id}"
    if answer.effect is WorkflowEffect.NONE:
        return done(request, path, f"It {answer.why}.", kind="warn")
    return done(request, path, words)
