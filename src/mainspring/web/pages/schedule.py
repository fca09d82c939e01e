"""The page of one schedule. Names hold slashes, and never a lone dash: `/-/` ends them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.schedules.sheet import legend
from mainspring.declare.names import valid_name
from mainspring.errors import InvalidArgument
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.forms import asked, when
from mainspring.web.frame.rendering import page
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

routes = Routes("schedules", PageRoute, include_in_schema=False)
_DAY = timedelta(days=1)


def path_of(name: str) -> str:
    """The page of the schedule of this name."""
    return f"/schedules/{quote(name)}"


@routes.get("/schedules/{name:path}/-/part")
async def part(request: Request, desk: AtDesk, name: str) -> Response:
    return page(request, "parts/schedule.html", **await _values(request, desk, name))


@routes.get("/schedules/{name:path}/-/why")
async def why(request: Request, desk: AtDesk, name: str) -> Response:
    """What became of a slot, or what kept a job from being made at a moment."""
    at = when(asked(request), "at")
    answer = None if at is None else await desk.questions.schedules.awhy(name, at)
    return page(request, "parts/why.html", name=name, answer=answer, at=at)


@routes.get("/schedules/{name:path}")
async def show(request: Request, desk: AtDesk, name: str) -> Response:
    """The whole page."""
    values = await _values(request, desk, name)
    at = when(asked(request), "at")
    answer = None if at is None else await desk.questions.schedules.awhy(name, at)
    return page(request, "schedule.html", answer=answer, at=at, **values)


async def _values(request: Request, desk: Desk, name: str) -> dict[str, Any]:
    before = when(asked(request), "before")
    sheet = await desk.questions.schedules.asheet(name, before=before)
    return {
        "name": name,
        "sheet": sheet,
        "legend": legend(sheet.tiles),
        "before": before,
        "hide": Payloads(desk),
        "topic": _topic(name),
        "declared": name in desk.app.registry.schedules,
        "yesterday": sheet.now.replace(hour=0, minute=0, second=0, microsecond=0) - _DAY,
    }


def _topic(name: str) -> str:
    """What the page listens to; a name that nobody could give today has no news of its own."""
    try:
        return f"schedule/{valid_name(name, 'schedule').replace('/', '~')}"
    except InvalidArgument:
        return ""
