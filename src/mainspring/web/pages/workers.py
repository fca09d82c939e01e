"""Workers and schedulers: who is alive, what each has in hand, and which leases are held."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mainspring.model.job import RunningJob
from mainspring.model.process import MemberInfo, Role
from mainspring.web.desk import AtDesk, Desk
from mainspring.web.frame.rendering import page
from mainspring.web.pages.route import PageRoute
from mainspring.web.routes import Routes

RUNNING, COMING = 500, 5
routes = Routes("fleet", PageRoute, include_in_schema=False)


@routes.get("/workers")
async def workers(request: Request, desk: AtDesk) -> Response:
    return page(request, "workers.html", **await _all(desk))


@routes.get("/workers/part")
async def workers_part(request: Request, desk: AtDesk) -> Response:
    return page(request, "parts/workers.html", **await _all(desk))


async def _all(desk: Desk) -> dict[str, Any]:
    store = await desk.store()
    members = await desk.questions.processes.aall()
    hands: dict[int, list[RunningJob]] = defaultdict(list)
    for job in await store.jobs.running(limit=RUNNING):
        hands[job.worker_id].append(job)
    alive = [each for each in members if each.alive]
    return {
        "workers": _of(alive, Role.WORKER),
        "schedulers": _of(alive, Role.SCHEDULER),
        "lost": [each for each in reversed(members) if not each.alive],
        "hands": hands,
        "coming": await store.slots.coming(limit=COMING),
        "leases": await store.leases.all(at=desk.clock.stamp()),
        "versions": sorted({each.version for each in alive}),
        "zones": sorted({each.tzdata for each in alive if each.tzdata}),
    }


def _of(members: list[MemberInfo], role: Role) -> list[MemberInfo]:
    return sorted(
        (each for each in members if each.role is role), key=lambda each: (each.name, each.started_at)
    )
