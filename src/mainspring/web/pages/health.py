"""Is everything as it should be? What the doctor finds, and how the database is."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.health.sheet import health_sheet
from mainspring.model.access import AccessRole
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.background import BackgroundTask, background_of
from mainspring.web.pages.route import PageRoute
from mainspring.web.rendering import done, page
from mainspring.web.services import AnAdmin, Services, TheServices

routes = Routes("health", PageRoute, include_in_schema=False)
FILE = "Damage of the file"


@routes.get("/health")
async def health(request: Request, services: TheServices) -> Response:
    return page(request, "health.html", **await _values(request, services))


@routes.get("/health/-/part")
async def part(request: Request, services: TheServices) -> Response:
    return page(request, "parts/health.html", **await _values(request, services))


@routes.post("/health/-/check", role=AccessRole.OPERATOR, order="health.check")
async def check(request: Request, services: TheServices, admin: AnAdmin) -> Response:
    """Have SQLite read its whole file."""
    store = await services.store()

    async def work(task: BackgroundTask) -> object:
        return await store.health.damage()

    async with admin.context.recorded("health.check"):
        background_of(request).start(FILE, work, author=admin.context.actor.name, now=services.clock.now())
    return done(request, "/health", "The file is being read.", kind="info")


async def _values(request: Request, services: Services) -> dict[str, Any]:
    checked = {each.title: each for each in background_of(request).newest()}.get(FILE)
    return {"sheet": await health_sheet(await services.store(), services.clock), "checked": checked}
