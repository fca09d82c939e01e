"""Jobs: find them."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from mainspring.model.job import JobState
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.rendering import page
from mainspring.web.pages.job_filter import TheWanted, Wanted
from mainspring.web.pages.payloads import Payloads
from mainspring.web.pages.queries import LARGEST_ID
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

routes = Routes("jobs", PageRoute, include_in_schema=False)


@routes.get("/jobs")
async def jobs(request: Request, desk: AtDesk, wanted: TheWanted) -> Response:
    text = wanted.fields["task"] or ""
    if text.isdecimal() and text.isascii() and int(text) <= LARGEST_ID:
        return RedirectResponse(f"{request.scope.get('root_path', '')}/jobs/{int(text)}", 303)
    return page(request, "jobs.html", **await _list(desk, wanted))


@routes.get("/jobs/part")
async def jobs_part(request: Request, desk: AtDesk, wanted: TheWanted) -> Response:
    return page(request, "parts/jobs.html", **await _list(desk, wanted))


async def _list(desk: Desk, wanted: Wanted) -> dict[str, Any]:
    store, shown = await desk.store(), Payloads(desk)
    found = await store.jobs.page(wanted.filter(), at=desk.clock.stamp())
    states = [("Live", None), *((each.value.capitalize(), each.value) for each in JobState)]
    return {
        "jobs": [(each, shown.failure(each.errors[-1] if each.errors else None)) for each in found.jobs],
        "hints": await desk.questions.jobs.ahints(found.jobs),
        "partial": found.partial,
        "wanted": wanted,
        "part_url": wanted.address("/jobs/part", state=wanted.state, before=wanted.before),
        "clear": Wanted().address("/jobs", state=wanted.state),
        "tabs": [(title, state, wanted.address("/jobs", state=state)) for title, state in states],
        "older": None
        if found.next is None
        else wanted.address("/jobs", state=wanted.state, before=found.next),
        "newest": None if wanted.before is None else wanted.address("/jobs", state=wanted.state),
    }
