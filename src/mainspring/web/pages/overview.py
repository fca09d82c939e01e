"""The first page: what is wrong, and then how it goes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mainspring.web.pages.route import PageRoute
from mainspring.web.rendering import page
from mainspring.web.routes import Routes

routes = Routes("overview", PageRoute, include_in_schema=False)


@routes.get("/")
async def overview(request: Request) -> Response:
    return page(request, "overview.html")
