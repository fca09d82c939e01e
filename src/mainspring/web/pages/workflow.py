"""The page of one workflow: its graph, its timeline, its steps."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.workflows.gantt import gantt
from mainspring.admin.workflows.picture import picture
from mainspring.admin.workflows.views import StepView
from mainspring.errors import InvalidArgument
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.forms import asked, text, whole
from mainspring.web.frame.rendering import page
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.route import PageRoute
from mainspring.web.pages.workflows import LARGEST_ID
from mainspring.web.routes import Routes

routes = Routes("workflows", PageRoute, include_in_schema=False)
ITEMS = 50
_MOST_ITEMS = 10_000


def valid_id(workflow_id: int) -> int:
    """An id that a store can look for."""
    if not 1 <= workflow_id <= LARGEST_ID:
        raise InvalidArgument("workflow", workflow_id, "the id of a workflow")
    return workflow_id


@routes.get("/workflows/{workflow_id:int}")
async def workflow(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    values = await _values(desk, workflow_id)
    return page(request, "workflow.html", step=await _step(request, desk, workflow_id), **values)


@routes.get("/workflows/{workflow_id:int}/part")
async def part(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    return page(request, "parts/workflow.html", **await _values(desk, workflow_id))


@routes.get("/workflows/{workflow_id:int}/step")
async def step(request: Request, desk: AtDesk, workflow_id: int) -> Response:
    """One step, or one item of a map, with what it was given and what it made."""
    found = await _step(request, desk, workflow_id)
    return page(
        request, "parts/step.html", step=found, workflow_id=workflow_id, items=ITEMS, hide=Payloads(desk)
    )


async def _values(desk: Desk, workflow_id: int) -> dict[str, Any]:
    view = await desk.questions.workflows.aget(valid_id(workflow_id))
    drawn = picture(view)
    return {
        "view": view,
        "workflow_id": workflow_id,
        "graph": None if drawn is None else Payloads(desk).written(drawn),
        "gantt": gantt(view),
        "items": ITEMS,
        "hide": Payloads(desk),
    }


async def _step(request: Request, desk: Desk, workflow_id: int) -> StepView | None:
    said = asked(request)
    name = text(said, "step")
    if name is None:
        return None
    item = whole(said, "item", least=0, most=_MOST_ITEMS)
    first = whole(said, "first", least=0, most=_MOST_ITEMS) or 0
    workflows = desk.questions.workflows
    return await workflows.astep(valid_id(workflow_id), name, item=item, first=first, most=ITEMS)
