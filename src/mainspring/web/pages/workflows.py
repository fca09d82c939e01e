"""Workflows: the list; one workflow with its graph, timeline and steps; and orders."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.workflows.gantt import gantt
from mainspring.admin.workflows.orders import WorkflowDone, WorkflowEffect, Workflows
from mainspring.admin.workflows.picture import picture
from mainspring.admin.workflows.views import StepView
from mainspring.errors import InvalidArgument
from mainspring.model.access import AccessRole
from mainspring.model.workflow import WorkflowState
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.forms import asked, form_of, text, whole
from mainspring.web.pages.route import PageRoute
from mainspring.web.privacy import Payloads
from mainspring.web.rendering import done, page
from mainspring.web.services import AnAdmin, Services, TheServices

routes = Routes("workflows", PageRoute, include_in_schema=False)
PAGE = 50
LARGEST_ID = 2**63 - 1
ITEMS = 50
_MOST_ITEMS = 10_000


@routes.get("/workflows")
async def workflows(request: Request, services: TheServices) -> Response:
    return page(request, "workflows.html", **await _values(request, services))


@routes.get("/workflows/-/part")
async def part(request: Request, services: TheServices) -> Response:
    return page(request, "parts/workflows.html", **await _values(request, services))


def valid_id(workflow_id: int) -> int:
    """An id that a store can look for."""
    if not 1 <= workflow_id <= LARGEST_ID:
        raise InvalidArgument("workflow", workflow_id, "the id of a workflow")
    return workflow_id


@routes.get("/workflows/{workflow_id:int}")
async def workflow(request: Request, services: TheServices, workflow_id: int) -> Response:
    values = await _whole(services, workflow_id)
    return page(request, "workflow.html", step=await _step(request, services, workflow_id), **values)


@routes.get("/workflows/{workflow_id:int}/part")
async def workflow_part(request: Request, services: TheServices, workflow_id: int) -> Response:
    return page(request, "parts/workflow.html", **await _whole(services, workflow_id))


@routes.get("/workflows/{workflow_id:int}/step")
async def step(request: Request, services: TheServices, workflow_id: int) -> Response:
    """One step, or one item of a map, with what it was given and what it made."""
    found = await _step(request, services, workflow_id)
    return page(
        request, "parts/step.html", step=found, workflow_id=workflow_id, items=ITEMS, hide=Payloads(services)
    )


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


async def _values(request: Request, services: Services) -> dict[str, Any]:
    said = asked(request)
    name, state = text(said, "name"), _state(said)
    before = whole(said, "before", least=1, most=LARGEST_ID)
    found = await services.questions.workflows.afind(name=name, state=state, before=before, limit=PAGE + 1)
    kept = {key: value for key, value in (("name", name), ("state", state)) if value}
    asked_for = {**kept, **({"before": before} if before else {})}
    more = len(found) > PAGE
    return {
        "rows": found[:PAGE],
        "name": name,
        "state": state,
        "states": [each.value for each in WorkflowState],
        "filtered": bool(kept),
        "query": f"?{urlencode(asked_for)}" if asked_for else "",
        "older": "/workflows?" + urlencode({**kept, "before": found[PAGE - 1].id}) if more else None,
        "newest": ("/workflows?" + urlencode(kept) if kept else "/workflows") if before else None,
    }


def _state(said: dict[str, str]) -> WorkflowState | None:
    value = said.get("state", "")
    try:
        return WorkflowState(value) if value else None
    except ValueError:
        raise InvalidArgument("state", value, f"one of {', '.join(WorkflowState)}") from None


async def _whole(services: Services, workflow_id: int) -> dict[str, Any]:
    view = await services.questions.workflows.aget(valid_id(workflow_id))
    drawn = picture(view)
    return {
        "view": view,
        "workflow_id": workflow_id,
        "graph": None if drawn is None else Payloads(services).written(drawn),
        "gantt": gantt(view),
        "items": ITEMS,
        "hide": Payloads(services),
    }


async def _step(request: Request, services: Services, workflow_id: int) -> StepView | None:
    said = asked(request)
    name = text(said, "step")
    if name is None:
        return None
    item = whole(said, "item", least=0, most=_MOST_ITEMS)
    first = whole(said, "first", least=0, most=_MOST_ITEMS) or 0
    workflows = services.questions.workflows
    return await workflows.astep(valid_id(workflow_id), name, item=item, first=first, most=ITEMS)


def _said(request: Request, answer: WorkflowDone, words: str) -> Response:
    path = f"/workflows/{answer.workflow_id}"
    if answer.effect is WorkflowEffect.NONE:
        return done(request, path, f"It {answer.why}.", kind="warn")
    return done(request, path, words)
