"""Queues and limits: what waits where, and why; pause and resume. Workers, schedulers and what they run."""

from __future__ import annotations

from collections import defaultdict
from typing import Annotated, Any

from fastapi import Form
from starlette.requests import Request
from starlette.responses import Response

from mainspring.admin.queues import Queues, limit_key_in_words, limit_key_name
from mainspring.model.access import AccessRole
from mainspring.model.job import RunningJob
from mainspring.model.process import ProcessInfo, Role
from mainspring.web.auth.policy import Routes
from mainspring.web.pages.forms import Text
from mainspring.web.pages.route import PageRoute
from mainspring.web.rendering import done, page
from mainspring.web.services import AnAdmin, Services, TheServices

LIMITS, HOLDERS = 200, 10
queues_routes = Routes("queues", PageRoute, include_in_schema=False)
RUNNING, COMING = 500, 5
workers_routes = Routes("fleet", PageRoute, include_in_schema=False)


@queues_routes.get("/queues")
async def queues(request: Request, services: TheServices, limit: Text = None) -> Response:
    return page(request, "queues.html", **await _all(services, limit))


@queues_routes.get("/queues/part")
async def queues_part(request: Request, services: TheServices, limit: Text = None) -> Response:
    return page(request, "parts/queues.html", **await _all(services, limit))


@queues_routes.post("/queues/pause", role=AccessRole.OPERATOR, order=Queues.apause)
async def pause(
    request: Request, admin: AnAdmin, name: Annotated[str, Form()], note: Annotated[Text, Form()] = None
) -> Response:
    one_line = None if note is None else " ".join(note.split())
    paused = await admin.queues.apause(name, note=one_line)
    said = "is paused: nothing more is claimed from it" if paused else "was paused already"
    return done(request, "/queues", f"Queue {name} {said}.", kind="good" if paused else "warn")


@queues_routes.post("/queues/resume", role=AccessRole.OPERATOR, order=Queues.aresume)
async def resume(request: Request, admin: AnAdmin, name: Annotated[str, Form()]) -> Response:
    resumed = await admin.queues.aresume(name)
    said = "goes on" if resumed else "was not paused"
    return done(request, "/queues", f"Queue {name} {said}.", kind="good" if resumed else "warn")


@workers_routes.get("/workers")
async def workers(request: Request, services: TheServices) -> Response:
    return page(request, "workers.html", **await _processes(services))


@workers_routes.get("/workers/part")
async def workers_part(request: Request, services: TheServices) -> Response:
    return page(request, "parts/workers.html", **await _processes(services))


async def _all(services: Services, limit: str | None) -> dict[str, Any]:
    limit_keys = await services.questions.limits.afind(name=limit, limit=LIMITS + 1, holders=HOLDERS)
    return {
        "queues": await services.questions.queues.aall(about=True),
        "limit_keys": [
            (each, limit_key_name(each.limit_key), limit_key_in_words(each.limit_key))
            for each in limit_keys[:LIMITS]
        ],
        "more": len(limit_keys) > LIMITS,
        "limit": limit,
    }


async def _processes(services: Services) -> dict[str, Any]:
    store = await services.store()
    processes = await services.questions.processes.aall()
    hands: dict[int, list[RunningJob]] = defaultdict(list)
    for job in await store.jobs.running(limit=RUNNING):
        hands[job.worker_id].append(job)
    alive = [each for each in processes if each.alive]
    return {
        "workers": _of(alive, Role.WORKER),
        "schedulers": _of(alive, Role.SCHEDULER),
        "lost": [each for each in reversed(processes) if not each.alive],
        "hands": hands,
        "coming": await store.slots.coming(limit=COMING),
        "leases": await store.leases.all(at=services.clock.stamp()),
        "versions": sorted({each.version for each in alive}),
        "zones": sorted({each.tzdata for each in alive if each.tzdata}),
    }


def _of(processes: list[ProcessInfo], role: Role) -> list[ProcessInfo]:
    return sorted(
        (each for each in processes if each.role is role), key=lambda each: (each.name, each.started_at)
    )
