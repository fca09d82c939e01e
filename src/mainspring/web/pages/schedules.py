"""The list of schedules, and the load that they make."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from mainspring.errors import InvalidArgument
from mainspring.model.schedule import Only, ScheduleFilter
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.forms import asked, text
from mainspring.web.pages.heat_map_cache import heat_map_cache_of
from mainspring.web.pages.route import PageRoute
from mainspring.web.rendering import page
from mainspring.web.services import Services, TheServices

routes = Routes("schedules", PageRoute, include_in_schema=False)
PAGE = 50


@routes.get("/schedules")
async def schedules(request: Request, services: TheServices) -> Response:
    values = await _list(request, services)
    if values["filtered"] or values["which"].after:
        return page(request, "schedules.html", summary=None, map=None, **values)
    summary = await services.questions.schedules.asummary()
    return page(request, "schedules.html", summary=summary, map=heat_map_cache_of(request).look(), **values)


@routes.get("/schedules/-/summary")
async def summary(request: Request, services: TheServices) -> Response:
    return page(
        request, "parts/schedules_summary.html", summary=await services.questions.schedules.asummary()
    )


@routes.get("/schedules/-/list")
async def listed(request: Request, services: TheServices) -> Response:
    return page(request, "parts/schedules.html", **await _list(request, services))


@routes.get("/schedules/-/heat")
async def heat(request: Request) -> Response:
    return page(request, "parts/heat.html", map=heat_map_cache_of(request).look())


async def _list(request: Request, services: Services) -> dict[str, Any]:
    said = asked(request)
    which = ScheduleFilter(text=text(said, "q"), only=_only(said), after=text(said, "after"), limit=PAGE)
    found = await services.questions.schedules.alisted(which)
    kept = {name: value for name, value in (("q", which.text), ("only", which.only)) if value}
    query = urlencode({**kept, **({"after": which.after} if which.after else {})})
    return {
        "found": found,
        "which": which,
        "filtered": bool(kept),
        "query": f"?{query}" if query else "",
        "next": None if found.next is None else "?" + urlencode({**kept, "after": found.next}),
        "first": f"?{urlencode(kept)}" if kept else "",
    }


def _only(said: dict[str, str]) -> Only | None:
    value = said.get("only", "")
    try:
        return Only(value) if value else None
    except ValueError:
        raise InvalidArgument("only", value, f"one of {', '.join(Only)}") from None
