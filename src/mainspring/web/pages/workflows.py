"""The list of workflows."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from mainspring.errors import InvalidArgument
from mainspring.model.workflow import WorkflowState
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.forms import asked, text, whole
from mainspring.web.frame.rendering import page
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

routes = Routes("workflows", PageRoute, include_in_schema=False)
PAGE = 50
LARGEST_ID = 2**63 - 1


@routes.get("/workflows")
async def workflows(request: Request, desk: AtDesk) -> Response:
    return page(request, "workflows.html", **await _values(request, desk))


@routes.get("/workflows/-/part")
async def part(request: Request, desk: AtDesk) -> Response:
    return page(request, "parts/workflows.html", **await _values(request, desk))


async def _values(request: Request, desk: Desk) -> dict[str, Any]:
    said = asked(request)
    name, state = text(said, "name"), _state(said)
    before = whole(said, "before", least=1, most=LARGEST_ID)
    found = await desk.questions.workflows.afind(name=name, state=state, before=before, limit=PAGE + 1)
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
