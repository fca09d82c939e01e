"""Is everything as it should be? What the doctor finds, and how the database is."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.health.sheet import health_sheet
from mainspring.model.access import AccessRole
from mainspring.web.desk import AnAdmin, AtDesk, Desk
from mainspring.web.frame.errands import Errand, errands_of
from mainspring.web.frame.flash import done
from mainspring.web.frame.rendering import page
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

routes = Routes("health", PageRoute, include_in_schema=False)
FILE = "Damage of the file"


@routes.get("/health")
async def health(request: Request, desk: AtDesk) -> Response:
    return page(request, "health.html", **await _values(request, desk))


@routes.get("/health/-/part")
async def part(request: Request, desk: AtDesk) -> Response:
    return page(request, "parts/health.html", **await _values(request, desk))


@routes.post("/health/-/check", role=AccessRole.OPERATOR, order="health.check")
async def check(request: Request, desk: AtDesk, admin: AnAdmin) -> Response:
    """Have SQLite read its whole file."""
    store = await desk.store()

    async def work(errand: Errand) -> object:
        return await store.health.damage()

    async with admin.context.recorded("health.check"):
        errands_of(request).start(FILE, work, author=admin.context.actor.name, now=desk.clock.now())
    return done(request, "/health", "The file is being read.", kind="info")


async def _values(request: Request, desk: Desk) -> dict[str, Any]:
    checked = {each.title: each for each in errands_of(request).newest()}.get(FILE)
    return {"sheet": await health_sheet(await desk.store(), desk.clock), "checked": checked}
